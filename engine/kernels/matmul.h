// The prompt kernel: as matvec, for many rows at once; its bits differ from the row family's, never between chunkings.
#pragma once

#include "kernels/kernel_library.h"
#include "tensor/tensor.h"

namespace auspex {

// x: (n_rows, weight.padded_cols) f32 with zero padding; y: (n_rows, y_stride) f32. add: y += instead of y =.
void record_matmul(Recorder& to, const Tensor& weight, BufferView x, BufferView y, uint32_t n_rows, uint32_t y_stride, bool add);

} // namespace auspex
