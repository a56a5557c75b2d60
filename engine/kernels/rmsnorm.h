// y = x / sqrt(mean(x²) + eps) · weight, one workgroup per row.
#pragma once

#include "kernels/kernel_library.h"

namespace auspex {

struct RmsnormShape {
    uint32_t width;
    uint32_t n_rows;
    float eps;
    uint32_t x_first_row = 0; // row r of y comes from row x_first_row + r · x_row_step of x
    uint32_t x_row_step = 1;
};

// x, y: (rows, padded_width(width)) f32; weight: (width) f32. The padding of y is written as zero.
void record_rmsnorm(Recorder& to, BufferView x, BufferView weight, BufferView y, const RmsnormShape& shape);

} // namespace auspex
