// Rows of f32 as sums of two f16, for prompts on matrix units; the tiles of halves take the high parts alone.
#pragma once

#include "kernels/kernel_library.h"
#include "shared/split_halves_args.h"

namespace auspex {

namespace ops {
struct SplitHalves {
    static constexpr std::string_view kShader = "split_halves";
    using Args = gpu::SplitHalvesArgs;
    struct Bindings {
        BufferView x, halves;
    };
};
} // namespace ops

uint64_t halves_bytes(uint32_t width); // of a row

// x: (n_rows, width) f32, width a multiple of 8. halves: n_rows rows of shared/split_halves_args.h.
void record_split_halves(Recorder& to, BufferView x, BufferView halves, uint32_t n_rows, uint32_t width);

} // namespace auspex
