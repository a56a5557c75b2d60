// Repetition, presence and frequency penalties and logit biases, on logits in memory. Truncation is truncate's.
#pragma once

#include "kernels/vocab.h"
#include "shared/edit_logits_args.h"

namespace auspex {

namespace ops {
struct EditLogits {
    static constexpr std::string_view kShader = "edit_logits";
    using Args = gpu::EditLogitsArgs;
    struct Bindings {
        BufferView logits, state, rows, history, target_rows, biases;
    };
};
} // namespace ops

struct EditLogitsBuffers {
    BufferView logits;      // rows of (vocab) f32, changed in place
    BufferView state;       // (slots) SlotState: penalties, n_biases
    BufferView history;     // (slots, history_stride) uint, committed tokens by position
    BufferView target_rows; // (batch, nodes) Row: the drafts of this round, which rows have as parents
    BufferView biases;      // (slots, kMaxBiases) TokenBias
};

// Rows of slots that ask for none of it keep their bits; rows that are not live, too.
void record_edit_logits(Recorder& to, const EditLogitsBuffers& buffers, const VocabShape& shape, uint32_t history_stride);

} // namespace auspex
