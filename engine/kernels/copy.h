// A copy by a compute kernel: what reading and writing memory costs at best.
#pragma once

#include "kernels/kernel_library.h"
#include "shared/copy_args.h"

namespace auspex {

namespace ops {
struct Copy {
    static constexpr std::string_view kShader = "copy";
    using Args = gpu::CopyArgs;
    struct Bindings {
        BufferView from, to;
    };
};
} // namespace ops

// from.size bytes, a multiple of 16, to the beginning of `to`.
void record_kernel_copy(Recorder& to, BufferView from, BufferView target);

} // namespace auspex
