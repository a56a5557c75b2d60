// Records the makers of rows.
#include "kernels/rows.h"

#include "kernels/attention.h"
#include "shared/replay_rows_args.h"
#include "shared/round_rows.h"
#include "shared/rows_args.h"

namespace auspex {

void record_rows(Recorder& to, const RoundRows& buffers, const RoundRowsShape& shape) {
    const Kernel* kernel = to.kernel({"rows", 7, sizeof(gpu::RowsArgs), false, {to.tuning().lanes}}); // llvmpipe computes idle lanes, too
    if (!kernel) return;
    to.cmd.dispatch(*kernel, {1, 1, 1},
                    gpu::RowsArgs{.batch = shape.batch,
                                  .draft_len = shape.draft_len,
                                  .history_stride = shape.history_stride,
                                  .split = to.tuning().attention_split,
                                  .target_kv_heads = shape.target_kv_heads,
                                  .draft_kv_heads = shape.draft_kv_heads,
                                  .target_tile_rows = attention_tile_rows(to.tuning(), gpu::nodes_of(shape.draft_len)),
                                  .draft_first_tile_rows = attention_tile_rows(to.tuning(), 2),
                                  .model_drafts = shape.model_drafts ? 1u : 0u,
                                  .draft_max_rows = shape.draft_max_rows},
                    {buffers.batch, buffers.state, buffers.history, buffers.round_slots, buffers.target_rows,
                     buffers.draft_rows, buffers.counts});
}

void record_replay_rows(Recorder& to, BufferView list, BufferView history, BufferView rows, BufferView counts, uint32_t n_rows,
                        uint32_t history_stride, uint32_t n_kv_heads, uint32_t attention_rows) {
    const Kernel* kernel = to.kernel({"replay_rows", 4, sizeof(gpu::ReplayRowsArgs), false, {}});
    if (!kernel) return;
    to.cmd.dispatch(*kernel, {1, 1, 1},
                    gpu::ReplayRowsArgs{.n_rows = n_rows,
                                        .history_stride = history_stride,
                                        .split = to.tuning().attention_split,
                                        .n_kv_heads = n_kv_heads,
                                        .attention_rows = attention_rows},
                    {list, history, rows, counts});
}

} // namespace auspex
