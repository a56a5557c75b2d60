// The prompt kernels: as matvec, for many rows at once; their bits differ from the row family's, never between chunkings.
#pragma once

#include "kernels/kernel_library.h"
#include "shared/matmul_args.h"
#include "tensor/tensor.h"

namespace auspex {

namespace ops {
struct Matmul {
    static constexpr std::string_view kShader = "matmul";
    using Args = gpu::MatmulArgs;
    struct Bindings {
        BufferView weight, x, y;
    };
};
} // namespace ops

// Whether record_matmul multiplies what record_split_halves made of x instead of x.
inline bool matmul_wants_halves(const Tuning& tuning) { return !tuning.prompt_by_rows && tuning.matmul_parts > 0; }

// x: (n_rows, weight.padded_cols) f32 with zero padding, or its halves; y: f32, row r at y_first + r · y_stride.
// add: y += instead of y =.
void record_matmul(Recorder& to, const Tensor& weight, BufferView x, BufferView y, uint32_t n_rows, uint32_t y_stride, bool add,
                   uint32_t y_first = 0);
// On matrix units, by this tile instead of the one that matrix_tile_of gives: for checks. y: (n_rows, y_stride).
void record_matmul_by_tile(Recorder& to, const Tensor& weight, BufferView x, BufferView y, uint32_t n_rows, uint32_t y_stride, MatrixTile tile);
// f16 parts of weights of this type on matrix units.
uint32_t matrix_weight_parts(const Tuning& tuning, DType dtype);

} // namespace auspex
