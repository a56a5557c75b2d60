// Records the fused feed-forward stage.
#include "kernels/gate_up.h"

#include "kernels/matvec_family.h"

namespace auspex {

void record_gate_up(Recorder& to, const Tensor& weight, const NormedRows& rows, BufferView y, uint32_t y_stride) {
    const auto gate_up = matvec_kernel<ops::GateUp>(to, weight, rows.n_rows, {rows.is_prepared}, /*least_outs=*/2);
    if (!gate_up.kernel) return;
    gpu::MatvecArgs common = {};
    set_rows(common, y_stride, rows);
    for_each_shard(to, gate_up, weight, rows.n_rows, 0, common, [&](Groups grid, const gpu::MatvecArgs& args, BufferView shard) {
        to.cmd.dispatch(gate_up.kernel, grid, args, {.weight = shard, .x = rows.x, .y = y, .norm = rows.weight});
    });
}

} // namespace auspex
