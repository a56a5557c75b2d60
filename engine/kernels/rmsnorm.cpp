// Records RMSNorm.
#include "kernels/rmsnorm.h"

#include "base/checked.h"

namespace auspex {

void record_rmsnorm(Recorder& to, const ops::Rmsnorm::Bindings& buffers, const RmsnormShape& shape) {
    const auto kernel = to.kernel<ops::Rmsnorm>({.constants = {to.tuning().lanes}, .has_subgroup_variant = true});
    if (!kernel) return;
    to.cmd.dispatch(kernel, {shape.n_rows, 1, 1},
                    {.width = shape.width,
                     .stride = round_up<uint32_t>(shape.width, 8),
                     .x_first_row = shape.x_first_row,
                     .x_row_step = shape.x_row_step,
                     .eps = shape.eps},
                    buffers);
}

} // namespace auspex
