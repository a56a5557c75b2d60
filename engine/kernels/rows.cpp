// Records the makers of rows.
#include "kernels/rows.h"

#include "kernels/attention.h"
#include "shared/round_rows.h"

namespace auspex {

void record_rows(Recorder& to, const ops::Rows::Bindings& buffers, const RoundRowsShape& shape) {
    const auto kernel = to.kernel<ops::Rows>({.constants = {to.tuning().lanes}}); // llvmpipe computes idle lanes, too
    if (!kernel) return;
    to.cmd.dispatch(kernel, {1, 1, 1},
                    {.batch = shape.batch,
                     .draft_len = shape.draft_len,
                     .history_stride = shape.history_stride,
                     .split = to.tuning().attention_split,
                     .target_kv_heads = shape.target_kv_heads,
                     .draft_kv_heads = shape.draft_kv_heads,
                     .target_tile_rows = attention_tile_rows(to.tuning(), gpu::nodes_of(shape.draft_len)),
                     .draft_first_tile_rows = attention_tile_rows(to.tuning(), gpu::draft_pass_rows_per_entry(shape.draft_lead, 0)),
                     .model_drafts = shape.model_drafts ? 1u : 0u,
                     .draft_lead = shape.draft_lead,
                     .draft_max_rows = shape.draft_max_rows},
                    buffers);
}

void record_replay_rows(Recorder& to, const ops::ReplayRows::Bindings& buffers, uint32_t n_rows, uint32_t history_stride, uint32_t n_kv_heads,
                        uint32_t attention_rows) {
    const auto kernel = to.kernel<ops::ReplayRows>();
    if (!kernel) return;
    to.cmd.dispatch(kernel, {1, 1, 1},
                    {.n_rows = n_rows,
                     .history_stride = history_stride,
                     .split = to.tuning().attention_split,
                     .n_kv_heads = n_kv_heads,
                     .attention_rows = attention_rows},
                    buffers);
}

} // namespace auspex
