// Makes the rows of a pass on the GPU: from slot states (a round), or from a list of known positions (a replay).
#pragma once

#include "kernels/kernel_library.h"
#include "shared/replay_rows_args.h"
#include "shared/rows_args.h"

namespace auspex {

namespace ops {
struct Rows {
    static constexpr std::string_view kShader = "rows";
    using Args = gpu::RowsArgs;
    struct Bindings {
        BufferView batch;       // (batch) uint
        BufferView state;       // (slots) SlotState
        BufferView history;     // (slots, history_stride) uint
        BufferView round_slots; // (batch) RoundSlot
        BufferView target_rows; // (batch, nodes) Row, see shared/round_rows.h
        BufferView draft_rows;  // regions of Row
        BufferView counts;      // counts_words(batch) uint, see rows_args.h
    };
};

struct ReplayRows {
    static constexpr std::string_view kShader = "replay_rows";
    using Args = gpu::ReplayRowsArgs;
    struct Bindings {
        BufferView list;    // (n_rows, 2) uint
        BufferView history; // (slots, history_stride) uint
        BufferView rows;    // (n_rows) Row
        BufferView counts;  // 3 uint
    };
};
} // namespace ops

struct RoundRowsShape {
    uint32_t batch;
    uint32_t draft_len; // K of this recording
    uint32_t history_stride;
    uint32_t target_kv_heads;
    uint32_t draft_kv_heads;
    bool model_drafts; // the recording has draft passes
    uint32_t draft_lead;     // rows of an entry before node 0 in the first draft pass, see shared/round_rows.h
    uint32_t draft_max_rows; // of a slot in the cache that drafts are written to
};

void record_rows(Recorder& to, const ops::Rows::Bindings& buffers, const RoundRowsShape& shape);

// A workgroup of the attention to come takes attention_rows rows.
void record_replay_rows(Recorder& to, const ops::ReplayRows::Bindings& buffers, uint32_t n_rows, uint32_t history_stride, uint32_t n_kv_heads,
                        uint32_t attention_rows = 1);

} // namespace auspex
