// The acceptance of Leviathan et al. 2023, algorithm 1, after vocab_partials and pick have reduced every row.
#pragma once

#include "kernels/kernel_library.h"

namespace auspex {

struct AcceptBuffers {
    BufferView target_logits;   // (batch, draft_len + 1, vocab) f32
    BufferView draft_logits;    // (batch, draft_len, draft_vocab) f32; any buffer when draft_len is 0
    BufferView target_choices;  // (batch, draft_len + 1) VocabChoice
    BufferView draft_choices;   // (batch, draft_len) VocabChoice; any buffer when draft_len is 0
    BufferView state;           // (slots) SlotState, updated
    BufferView history;         // (slots, history_stride) uint, appended to
    BufferView round_slots;     // (batch) RoundSlot
    BufferView target_rows;     // (batch, draft_len + 1) Row
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

// Three stages with barriers between them: test, race (if any), commit, which asks for searches (if any).
void record_accept(Recorder& to, const AcceptBuffers& buffers, const AcceptShape& shape);

} // namespace auspex
