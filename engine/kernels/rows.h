// Makes the rows of a pass on the GPU: from slot states (a round), or from a list of known positions (a replay).
#pragma once

#include "kernels/kernel_library.h"

namespace auspex {

struct RoundRows {
    BufferView batch;       // (batch) uint
    BufferView state;       // (slots) SlotState
    BufferView history;     // (slots, history_stride) uint
    BufferView round_slots; // (batch) RoundSlot
    BufferView target_rows; // (batch, nodes) Row, see shared/round_rows.h
    BufferView draft_rows;  // regions of Row
    BufferView counts;      // counts_words(batch) uint, see rows_args.h
};

struct RoundRowsShape {
    uint32_t batch;
    uint32_t draft_len; // K of this recording
    uint32_t history_stride;
    uint32_t target_kv_heads;
    uint32_t draft_kv_heads;
    bool model_drafts; // the recording has draft passes
    uint32_t draft_max_rows; // of a slot in the draft's cache
};

void record_rows(Recorder& to, const RoundRows& buffers, const RoundRowsShape& shape);

// list: (n_rows, 2) uint; counts: 3 uint. A workgroup of the attention to come takes attention_rows rows.
void record_replay_rows(Recorder& to, BufferView list, BufferView history, BufferView rows, BufferView counts, uint32_t n_rows,
                        uint32_t history_stride, uint32_t n_kv_heads, uint32_t attention_rows = 1);

} // namespace auspex
