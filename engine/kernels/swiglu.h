// y = silu(gate) · up, elementwise.
#pragma once

#include "kernels/kernel_library.h"
#include "shared/swiglu_args.h"

namespace auspex {

namespace ops {
struct Swiglu {
    static constexpr std::string_view kShader = "swiglu";
    using Args = gpu::SwigluArgs;
    struct Bindings {
        BufferView gate_up, y;
    };
};
} // namespace ops

// gate_up: (n_rows, 2, width) f32, or in pairs (n_rows, width, 2); y: (n_rows, padded_width(width)) f32, padding written as zero.
void record_swiglu(Recorder& to, BufferView gate_up, BufferView y, uint32_t n_rows, uint32_t width, bool in_pairs = false);

} // namespace auspex
