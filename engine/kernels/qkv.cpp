// Records the fused attention input.
#include "kernels/qkv.h"

#include "kernels/cache_args.h"
#include "kernels/matvec_family.h"

namespace auspex {

void record_qkv(Recorder& to, const Tensor& weight, const NormedRows& rows, const AttentionShape& shape, const ops::RopeAppend::Bindings& b,
                uint32_t first_out) {
    const auto qkv = matvec_kernel<ops::Qkv>(to, weight, rows.n_rows, {rows.is_prepared, shape.head_dim, cache_type(shape.cache_dtype)}, /*least_outs=*/2);
    if (!qkv.kernel) return;
    auto common = cache_args<gpu::QkvArgs>(shape);
    set_rows(common, (shape.n_heads + 2 * shape.n_kv_heads) * shape.head_dim, rows);
    for_each_shard(to, qkv, weight, rows.n_rows, first_out, common, [&](Groups grid, const gpu::QkvArgs& args, BufferView shard) {
        to.cmd.dispatch(qkv.kernel, grid, args,
                        {.weight = shard,
                         .x = rows.x,
                         .y = b.qkv,
                         .norm = rows.weight,
                         .rows = b.rows,
                         .table = b.table,
                         .pages = b.pages,
                         .k_cache = b.k_cache,
                         .v_cache = b.v_cache});
    });
}

} // namespace auspex
