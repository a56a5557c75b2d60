// A copy by a compute kernel: what reading and writing memory costs at best.
#pragma once

#include "kernels/kernel_library.h"

namespace auspex {

// from.size bytes, a multiple of 16, to the beginning of `to`.
void record_kernel_copy(Recorder& to, BufferView from, BufferView target);

} // namespace auspex
