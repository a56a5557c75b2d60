// The first half of the feed-forward in one stage: y = silu(gate · n) · (up · n), n the RMSNorm of x; a member of the row family.
#pragma once

#include "kernels/matvec.h"

namespace auspex {

namespace ops {
struct GateUp {
    static constexpr std::string_view kShader = "gate_up";
    using Args = gpu::MatvecArgs;
    struct Bindings {
        BufferView weight, x, y, norm;
    };
};
} // namespace ops

// weight: (2 · width, d), gate and up rows in turn; y: (n_rows, y_stride) f32, of which width are written.
void record_gate_up(Recorder& to, const Tensor& weight, const NormedRows& rows, BufferView y, uint32_t y_stride);

} // namespace auspex
