// The ops of the acceptance, Leviathan et al. 2023, algorithm 1, after vocab_partials and pick have reduced every row. Their order is accept/'s.
#pragma once

#include "kernels/kernel_library.h"
#include "shared/accept_args.h"

namespace auspex {

namespace ops {
struct AcceptTest {
    static constexpr std::string_view kShader = "accept_test";
    using Args = gpu::AcceptTestArgs;
    struct Bindings {
        BufferView target_logits, draft_logits, target_choices, draft_choices, state, round_slots, target_rows, plans;
    };
};

struct AcceptRace {
    static constexpr std::string_view kShader = "accept_race";
    using Args = gpu::AcceptRaceArgs;
    struct Bindings {
        BufferView target_logits, draft_logits, target_choices, draft_choices, state, round_slots, plans, partials;
    };
};

struct AcceptCommit {
    static constexpr std::string_view kShader = "accept_commit";
    using Args = gpu::AcceptCommitArgs;
    struct Bindings {
        BufferView partials, plans, round_slots, target_rows, state, history, records;
    };
};

struct AcceptCommitSearches {
    static constexpr std::string_view kShader = "accept_commit.searches";
    using Args = gpu::AcceptCommitArgs;
    struct Bindings {
        BufferView partials, plans, round_slots, target_rows, state, history, records, counts, index;
    };
};
} // namespace ops

struct AcceptBuffers {
    BufferView target_logits;   // (batch, nodes, vocab) f32, see shared/round_rows.h
    BufferView draft_logits;    // (batch, draft_len, draft_vocab) f32; none when draft_len is 0
    BufferView target_choices;  // (batch, nodes) VocabChoice
    BufferView draft_choices;   // (batch, draft_len) VocabChoice; none when draft_len is 0
    BufferView state;           // (slots) SlotState, updated
    BufferView history;         // (slots, history_stride) uint, appended to
    BufferView round_slots;     // (batch) RoundSlot
    BufferView target_rows;     // (batch, nodes) Row
    BufferView plans;           // (batch) AcceptPlan
    BufferView race_partials;   // (batch, vocab_chunks(vocab)) RacePartial
    BufferView records;         // (batch) RoundRecord, for the host
    BufferView counts = {};     // see rows_args.h: of searches; if any are to be asked for
    BufferView index = {};      // (slots, 1 + index_words) uint, updated
};

struct AcceptShape {
    uint32_t batch;
    uint32_t draft_len; // K of this recording
    uint32_t vocab;
    uint32_t draft_vocab; // ≤ vocab: the draft model has the target's first ids
    uint32_t history_stride;
    bool races = true;  // false: every slot takes the best token of a row, and no logits are read
    uint32_t index_words = 0; // of a slot's index; 0: no search follows
};

// Each entry's drafts are tested in order: how many pass, and where the next token comes from.
void record_accept_test(Recorder& to, const AcceptBuffers& buffers, const AcceptShape& shape);
// The next token of entries that draw it, from the residual or the target.
void record_accept_race(Recorder& to, const AcceptBuffers& buffers, const AcceptShape& shape);
// The race's end, stops and limits; moves the slots on, writes the records, and asks for searches (if any).
void record_accept_commit(Recorder& to, const AcceptBuffers& buffers, const AcceptShape& shape);

} // namespace auspex
