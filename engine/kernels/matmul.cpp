// Records the prompt kernels: by rows, tiles or matrix units, as the device is tuned.
#include "kernels/matmul.h"

#include "base/checked.h"
#include "kernels/matvec.h"
#include "kernels/shards.h"

namespace auspex {

uint32_t matrix_weight_parts(const Tuning& tuning, DType dtype) {
    return dtype == DType::f16 || dtype == DType::bf16 ? 1 : tuning.matmul_parts;
}

namespace {
// rows, outs: of a workgroup.
void record(Recorder& to, KernelId id, const Tensor& weight, BufferView x, BufferView y, uint32_t n_rows, uint32_t y_stride, uint32_t y_first, uint32_t rows,
            uint32_t outs) {
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

std::string blocks(const Tensor& weight) { return is_quantized(weight.dtype) ? ".quant" : ""; }

KernelId by_tile(const Tuning& tuning, const Tensor& weight, bool add, MatrixTile tile) {
    KernelId id = {.variant = "_matrix" + blocks(weight)};
    id.constants = {4 * tuning.lanes, weight.layout(), add, tuning.matrix.m, tuning.matrix.n, tuning.matrix.k, tuning.matmul_parts, tile.rows, tile.outs, tile.blocks};
    id.full_subgroups = true;
    return id;
}
} // namespace

void record_matmul(Recorder& to, const Tensor& weight, BufferView x, BufferView y, uint32_t n_rows, uint32_t y_stride, bool add, uint32_t y_first) {
    const Tuning& tuning = to.tuning();
    if (tuning.prompt_by_rows) return record_matvec(to, weight, x, y, n_rows, y_stride, add, y_first);
    if (tuning.prompts_use_matrices()) {
        const MatrixTile tile = matrix_tile_of(tuning, matrix_weight_parts(tuning, weight.dtype), n_rows, weight.rows, to.kernels.device().caps);
        return record(to, by_tile(tuning, weight, add, tile), weight, x, y, n_rows, y_stride, y_first, 2 * tile.rows, 2 * tile.outs);
    }
    KernelId id = {.constants = {weight.layout(), add}, .variant = blocks(weight) + (tuning.matmul_parts > 0 ? ".halves" : "")};
    record(to, std::move(id), weight, x, y, n_rows, y_stride, y_first, gpu::kMatmulTile, gpu::kMatmulTile);
}

void record_matmul_by_tile(Recorder& to, const Tensor& weight, BufferView x, BufferView y, uint32_t n_rows, uint32_t y_stride, MatrixTile tile) {
    record(to, by_tile(to.tuning(), weight, false, tile), weight, x, y, n_rows, y_stride, 0, 2 * tile.rows, 2 * tile.outs);
}

} // namespace auspex
