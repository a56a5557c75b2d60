// y = x / sqrt(mean(x²) + eps) · weight, one workgroup per row.
#pragma once

#include "kernels/kernel_library.h"
#include "shared/rmsnorm_args.h"

namespace auspex {

namespace ops {
struct Rmsnorm {
    static constexpr std::string_view kShader = "rmsnorm";
    using Args = gpu::RmsnormArgs;
    struct Bindings {
        BufferView x, weight, y; // x, y: (rows, padded_width(width)) f32, the padding of y written as zero; weight: (width) f32
    };
};
} // namespace ops

struct RmsnormShape {
    uint32_t width;
    uint32_t n_rows;
    float eps;
    uint32_t x_first_row = 0; // row r of y comes from row x_first_row + r · x_row_step of x
    uint32_t x_row_step = 1;
};

void record_rmsnorm(Recorder& to, const ops::Rmsnorm::Bindings& buffers, const RmsnormShape& shape);

} // namespace auspex
