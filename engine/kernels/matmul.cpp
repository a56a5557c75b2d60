// Records the prompt kernel.
#include "kernels/matmul.h"

#include "base/checked.h"
#include "kernels/matvec.h"
#include "shared/matmul_args.h"

namespace auspex {

void record_matmul(Recorder& to, const Tensor& weight, BufferView x, BufferView y, uint32_t n_rows, uint32_t y_stride, bool add,
                   uint32_t y_first) {
    const Tuning& tuning = to.tuning();
    if (tuning.prompt_by_rows) return record_matvec(to, weight, x, y, n_rows, y_stride, add, y_first);
    const Kernel* kernel = to.kernel({is_quantized(weight.dtype) ? "matmul.quant" : "matmul",
                                      3,
                                      sizeof(gpu::MatmulArgs),
                                      false,
                                      {static_cast<uint32_t>(weight.dtype), add ? 1u : 0u}});
    if (!kernel) return;
    for (const Shard& shard : weight.shards) {
        to.cmd.dispatch(*kernel, {ceil_div(n_rows, gpu::kMatmulTile), ceil_div(shard.n_rows, gpu::kMatmulTile), 1},
                        gpu::MatmulArgs{.k_steps = weight.steps(),
                                        .n_out = shard.n_rows,
                                        .first_out = y_first + shard.first_row,
                                        .n_rows = n_rows,
                                        .x_stride = weight.padded_cols / 4,
                                        .y_stride = y_stride},
                        {shard.buffer.view(), x, y});
    }
}

} // namespace auspex
