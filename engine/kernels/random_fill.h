// Random weights made on the device, in any format: for measuring shapes without a file.
#pragma once

#include "kernels/kernel_library.h"
#include "shared/random_fill_args.h"
#include "tensor/tensor.h"

namespace auspex {

namespace ops {
struct RandomFill {
    static constexpr std::string_view kShader = "random_fill";
    using Args = gpu::RandomFillArgs;
    struct Bindings {
        BufferView rows;
    };
};
} // namespace ops

// All of the tensor's shards; the same bits however it is cut. spread: standard deviation of a weight.
void record_random_fill(Recorder& to, const Tensor& tensor, uint64_t seed, float spread);

} // namespace auspex
