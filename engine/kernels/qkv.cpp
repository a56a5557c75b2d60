// Records the fused attention input.
#include "kernels/qkv.h"

#include "kernels/cache_args.h"
#include "kernels/matvec_family.h"
#include "shared/qkv_args.h"

namespace auspex {

void record_qkv(Recorder& to, const Tensor& weight, const NormedRows& rows, const AttentionShape& shape, const QkvBuffers& b, uint32_t first_out) {
    const MatvecKernel qkv =
        matvec_kernel(to, "qkv", weight, rows.n_rows, 9, sizeof(gpu::QkvArgs), {rows.is_prepared, shape.head_dim, cache_type(shape.cache_dtype)}, /*least_outs=*/2);
    if (!qkv.kernel) return;
    auto common = cache_args<gpu::QkvArgs>(shape);
    set_rows(common, (shape.n_heads + 2 * shape.n_kv_heads) * shape.head_dim, rows);
    for_each_shard(to, qkv, weight, rows.n_rows, first_out, common, [&](Groups grid, const gpu::QkvArgs& args, BufferView shard) {
        to.cmd.dispatch(*qkv.kernel, grid, args, {shard, rows.x, b.qkv, rows.weight, b.rows, b.table, b.pages, b.k, b.v});
    });
}

} // namespace auspex
