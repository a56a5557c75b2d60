// The row family: y[r][o] (+)= Σ_k weight[o][k] · x[r][k] for 1…16 rows, more in tiles; bitwise independent of n_rows.
// Its members in files of their own, normed_matvec, qkv and gate_up, do more before and after the sums.
#pragma once

#include "kernels/kernel_library.h"
#include "shared/matvec_args.h"
#include "tensor/tensor.h"

namespace auspex {

namespace ops {
struct Matvec {
    static constexpr std::string_view kShader = "matvec";
    using Args = gpu::MatvecArgs;
    struct Bindings {
        BufferView weight, x, y;
    };
};
} // namespace ops

// x: (n_rows, weight.padded_cols) f32 with zero padding; y: f32, row r at y_first + r · y_stride. add: y += instead of y =.
void record_matvec(Recorder& to, const Tensor& weight, BufferView x, BufferView y, uint32_t n_rows, uint32_t y_stride, bool add,
                   uint32_t y_first = 0);

// Rows on their way into a member of the family through an RMSNorm: row r is row first_row + r · row_step of x.
struct NormedRows {
    BufferView x;      // (rows, padded width) f32 with zero padding
    BufferView weight; // (padded width) f32, likewise
    uint32_t width;
    float eps;
    uint32_t n_rows;
    uint32_t first_row = 0, row_step = 1;
    bool is_prepared = false; // by record_prenorm: x is multiplied with the weights, and weight is (n_rows) f32, scales
};

// The row count that is built and used for a pass of n_rows.
uint32_t matvec_tile_rows(const Tuning& tuning, DType dtype, uint32_t n_rows);

} // namespace auspex
