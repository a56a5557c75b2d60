// Records the fused feed-forward stage.
#include "kernels/gate_up.h"

#include "kernels/matvec_family.h"

namespace auspex {

void record_gate_up(Recorder& to, const Tensor& weight, const NormedRows& rows, BufferView y, uint32_t y_stride) {
    const MatvecKernel gate_up = matvec_kernel(to, "gate_up", weight, rows.n_rows, 4, sizeof(gpu::MatvecArgs), {rows.is_prepared}, /*least_outs=*/2);
    if (!gate_up.kernel) return;
    gpu::MatvecArgs common = {};
    set_rows(common, y_stride, rows);
    for_each_shard(to, gate_up, weight, rows.n_rows, 0, common, [&](Groups grid, const gpu::MatvecArgs& args, BufferView shard) {
        to.cmd.dispatch(*gate_up.kernel, grid, args, {shard, rows.x, y, rows.weight});
    });
}

} // namespace auspex
