// Records the prompt kernels: by rows, tiles or matrix units, as the device is tuned.
#include "kernels/matmul.h"

#include "base/checked.h"
#include "kernels/matvec.h"
#include "kernels/shards.h"

namespace auspex {

void record_matmul(Recorder& to, const Tensor& weight, BufferView x, BufferView y, uint32_t n_rows, uint32_t y_stride, bool add,
                   uint32_t y_first) {
    const Tuning& tuning = to.tuning();
    if (tuning.prompt_by_rows) return record_matvec(to, weight, x, y, n_rows, y_stride, add, y_first);
    const uint32_t layout = weight.layout(), adds = add ? 1 : 0;
    const std::string blocks = is_quantized(weight.dtype) ? ".quant" : "";
    KernelId id = {.constants = {layout, adds}, .variant = blocks + (tuning.matmul_parts > 0 ? ".halves" : "")};
    uint32_t rows = gpu::kMatmulTile, outs = gpu::kMatmulTile; // of a workgroup
    if (tuning.prompts_use_matrices()) {
        id.variant = "_matrix" + blocks;
        const uint32_t weight_parts = weight.dtype == DType::f16 || weight.dtype == DType::bf16 ? 1 : tuning.matmul_parts;
        const MatrixTile tile = matrix_tile_of(tuning, weight_parts, n_rows, weight.rows, to.kernels.device().caps);
        id.constants = {4 * tuning.lanes, layout, adds, tuning.matrix.m, tuning.matrix.n, tuning.matrix.k, tuning.matmul_parts, tile.rows, tile.outs, tile.blocks};
        id.full_subgroups = true;
        rows = 2 * tile.rows;
        outs = 2 * tile.outs;
    }
    const auto kernel = to.kernel<ops::Matmul>(std::move(id));
    if (!kernel) return;
    each_shard(to, weight, [&](const Shard& shard) {
        to.cmd.dispatch(kernel, {ceil_div(n_rows, rows), ceil_div(shard.n_rows, outs), 1},
                        {.k_steps = weight.steps(),
                         .n_out = shard.n_rows,
                         .first_out = y_first + shard.first_row,
                         .n_rows = n_rows,
                         .x_stride = weight.padded_cols / 4,
                         .y_stride = y_stride},
                        {.weight = shard.buffer.view(), .x = x, .y = y});
    });
}

} // namespace auspex
