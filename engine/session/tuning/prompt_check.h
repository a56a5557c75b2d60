// Does the prompt kernel compute what the row family does, but for rounding? Matrix units are the one thing here whose
// arithmetic a driver makes up; where they are wrong every prompt would be. Waits.
#pragma once

#include "kernels/kernel_library.h"
#include "tensor/dtype.h"

#include <optional>

namespace auspex {

// Σ (a - b)² / Σ b² of a product of 70 × 512 weights in this format with 33 rows, a by the kernel that `kernels` is tuned
// to for prompts, b by the row family. Below 1e-9 by rounding alone. Nothing is compiled after deadline_ns (of now_ns()); none: it came first.
Result<std::optional<double>> prompt_kernel_error(Device& device, KernelLibrary& kernels, DType format, uint64_t deadline_ns = ~0ull);

} // namespace auspex
