// What log-probabilities of generated tokens are made of, for rows of slots that ask: sums over the vocabulary, the best tokens, and the
// logits of what is said, all of it as the head left the logits.
#pragma once

#include "kernels/vocab.h"
#include "shared/logprobs_args.h"

namespace auspex {

namespace ops {
struct LogprobsPartials {
    static constexpr std::string_view kShader = "logprobs_partials";
    using Args = gpu::LogprobsArgs;
    struct Bindings {
        BufferView logits, state, rows, partials;
    };
};

struct LogprobsKeep {
    static constexpr std::string_view kShader = "logprobs_keep";
    using Args = gpu::LogprobsArgs;
    struct Bindings {
        BufferView logits, state, rows, history, target_rows, biases, kept;
    };
};

struct LogprobsRows {
    static constexpr std::string_view kShader = "logprobs_rows";
    using Args = gpu::LogprobsArgs;
    struct Bindings {
        BufferView partials, state, rows, logprobs;
    };
};

struct LogprobsChosen {
    static constexpr std::string_view kShader = "logprobs_chosen";
    using Args = gpu::LogprobsChosenArgs;
    struct Bindings {
        BufferView logits, state, round_slots, history, biases, kept, logprobs;
    };
};
} // namespace ops

struct LogprobBuffers {
    BufferView logits;      // (batch, nodes, vocab) f32, of the target
    BufferView state;       // (slots) SlotState: logprobs, n_biases, and after the round target_len
    BufferView history;     // (slots, history_stride) uint, committed tokens by position
    BufferView target_rows; // (batch, nodes) Row: the drafts of this round, which rows have as parents
    BufferView round_slots; // (batch) RoundSlot
    BufferView biases;      // (slots, kMaxBiases) TokenBias
    BufferView partials;    // (batch · nodes, vocab chunks) LogprobPartial
    BufferView kept;        // (batch · nodes, kept_words_of(history_stride)) f32
    BufferView logprobs;    // (batch, nodes) LogprobRow, for the host
};

// Of every row, before anything changes a logit; will_edit: edit_logits is going to.
void record_logprob_rows(Recorder& to, const LogprobBuffers& buffers, const VocabShape& shape, bool will_edit, uint32_t history_stride);

struct ChosenShape {
    uint32_t batch;
    uint32_t draft_len; // K of this recording
    uint32_t vocab;
    uint32_t history_stride;
    bool edited; // edit_logits ran
};
// Of the tokens that the round said, after accept_commit.
void record_logprobs_chosen(Recorder& to, const LogprobBuffers& buffers, const ChosenShape& shape);

} // namespace auspex
