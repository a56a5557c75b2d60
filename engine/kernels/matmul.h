// The prompt kernel: as matvec, for many rows at once; its bits differ from the row family's, never between chunkings.
#pragma once

#include "kernels/kernel_library.h"
#include "tensor/tensor.h"

namespace auspex {

// x: (n_rows, weight.padded_cols) f32 with zero padding; y: f32, row r at y_first + r · y_stride. add: y += instead of y =.
void record_matmul(Recorder& to, const Tensor& weight, BufferView x, BufferView y, uint32_t n_rows, uint32_t y_stride, bool add,
                   uint32_t y_first = 0);

} // namespace auspex
