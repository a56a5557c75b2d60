// Records RMSNorm.
#include "kernels/rmsnorm.h"

#include "base/checked.h"
#include "shared/rmsnorm_args.h"

namespace auspex {

void record_rmsnorm(Recorder& to, BufferView x, BufferView weight, BufferView y, const RmsnormShape& shape) {
    const Kernel* kernel = to.kernel({"rmsnorm", 3, sizeof(gpu::RmsnormArgs), true, {to.tuning().lanes}});
    if (!kernel) return;
    to.cmd.dispatch(*kernel, {shape.n_rows, 1, 1},
                    gpu::RmsnormArgs{.width = shape.width,
                                     .stride = round_up<uint32_t>(shape.width, 8),
                                     .x_first_row = shape.x_first_row,
                                     .x_row_step = shape.x_row_step,
                                     .eps = shape.eps},
                    {x, weight, y});
}

} // namespace auspex
