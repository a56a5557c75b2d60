// Records the norm and the product, and what is kept of it.
#include "kernels/normed_matvec.h"

#include "kernels/matvec_family.h"

namespace auspex {

namespace {
MatvecKernel<ops::NormedMatvec> normed_kernel(Recorder& to, const Tensor& weight, const NormedRows& rows, uint32_t bests) {
    return matvec_kernel<ops::NormedMatvec>(to, weight, rows.n_rows, {rows.is_prepared, bests});
}
} // namespace

void record_normed_matvec(Recorder& to, const Tensor& weight, const NormedRows& rows, BufferView y, uint32_t y_stride, uint32_t y_first) {
    const auto kernel = normed_kernel(to, weight, rows, 0);
    if (!kernel.kernel) return;
    gpu::NormedMatvecArgs common = {};
    set_rows(common, y_stride, rows);
    for_each_shard(to, kernel, weight, rows.n_rows, y_first, common, [&](Groups grid, const gpu::NormedMatvecArgs& args, BufferView shard) {
        // What it does not read is bound to what nobody writes.
        to.cmd.dispatch(kernel.kernel, grid, args,
                        {.weight = shard, .x = rows.x, .y = y, .norm = rows.weight, .bests = y, .state = rows.weight, .rows = rows.weight});
    });
}

uint32_t record_best_tokens(Recorder& to, const Tensor& weight, const NormedRows& rows, const BestTokens& out) {
    const auto kernel = normed_kernel(to, weight, rows, out.adds_noise ? 2 : 1);
    if (!kernel.kernel) return 1;
    gpu::NormedMatvecArgs common = {};
    set_rows(common, 0, rows);
    common.first_row = out.first_row;
    common.row_step = out.row_step;
    for (const Shard& shard : weight.shards) common.n_bests += ceil_div(shard.n_rows, kernel.group_outs);
    uint32_t first = 0;
    for_each_shard(to, kernel, weight, rows.n_rows, 0, common, [&](Groups grid, gpu::NormedMatvecArgs args, BufferView shard) {
        args.first_best = first;
        first += ceil_div(args.n_out, kernel.group_outs);
        to.cmd.dispatch(kernel.kernel, grid, args,
                        {.weight = shard,
                         .x = rows.x,
                         .y = out.bests,
                         .norm = rows.weight,
                         .bests = out.bests,
                         .state = out.state.or_else(rows.weight),
                         .rows = out.rows.or_else(rows.weight)});
    });
    return common.n_bests;
}

} // namespace auspex
