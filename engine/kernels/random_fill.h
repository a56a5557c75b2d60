// Random weights made on the device, in any format: for measuring shapes without a file.
#pragma once

#include "kernels/kernel_library.h"
#include "tensor/tensor.h"

namespace auspex {

// All of the tensor's shards; the same bits however it is cut. spread: standard deviation of a weight.
void record_random_fill(Recorder& to, const Tensor& tensor, uint64_t seed, float spread);

} // namespace auspex
