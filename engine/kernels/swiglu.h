// y = silu(gate) · up, elementwise.
#pragma once

#include "kernels/kernel_library.h"

namespace auspex {

// gate_up: (n_rows, 2, width) f32, or in pairs (n_rows, width, 2); y: (n_rows, padded_width(width)) f32, padding written as zero.
void record_swiglu(Recorder& to, BufferView gate_up, BufferView y, uint32_t n_rows, uint32_t width, bool in_pairs = false);

} // namespace auspex
