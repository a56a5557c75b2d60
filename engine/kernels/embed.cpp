// Records the embedding gather, once per shard of the table.
#include "kernels/embed.h"

#include "kernels/shards.h"

namespace auspex {

void record_embed(Recorder& to, const Tensor& table, BufferView rows, uint32_t n_rows, BufferView x, uint32_t x_stride) {
    const auto kernel = to.kernel<ops::Embed>({.constants = {table.layout()}, .variant = is_quantized(table.dtype) ? ".quant" : ""});
    if (!kernel) return;
    const uint32_t groups_of_row = ceil_div(table.padded_cols / 8, gpu::kEmbedThreads);
    each_shard(to, table, [&](const Shard& shard) {
        to.cmd.dispatch(kernel, {groups_of_row, n_rows, 1},
                        {.n_rows = n_rows,
                         .width = table.cols,
                         .table_steps = table.steps(),
                         .first_token = shard.first_row,
                         .n_tokens = shard.n_rows,
                         .table_tokens = table.rows,
                         .x_stride = x_stride},
                        {.weight = shard.buffer.view(), .rows = rows, .x = x});
    });
}

} // namespace auspex
