// Records the norm.
#include "kernels/prenorm.h"

#include "shared/texels.h"

namespace auspex {

NormedRows record_prenorm(Recorder& to, const Tensor& weight, const NormedRows& rows, BufferView y, BufferView scales) {
    const uint32_t octets = is_quantized(weight.dtype) ? 4 : 1;
    const auto kernel = to.kernel<ops::Prenorm>({.constants = {to.tuning().lanes, octets},
                                                 .has_subgroup_variant = true,
                                                 .wide_variant = ".wide",
                                                 .texels = {gpu::kTexelVecs + gpu::kPrenormX, gpu::kTexelVecs + gpu::kPrenormWeight}});
    if (kernel)
        to.cmd.dispatch(kernel, {rows.n_rows, 1, 1},
                        {.k_steps = weight.steps(),
                         .stride = weight.padded_cols / 4,
                         .x_first_row = rows.first_row,
                         .x_row_step = rows.row_step,
                         .norm_width = rows.width,
                         .norm_eps = rows.eps},
                        {.x = rows.x, .weight = rows.weight, .y = y, .scales = scales});
    return {.x = y, .weight = scales, .width = rows.width, .eps = rows.eps, .n_rows = rows.n_rows, .is_prepared = true};
}

} // namespace auspex
