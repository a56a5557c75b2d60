// Quantised blocks by the description of their formats, one element at a time, in double. For tests of every decoder,
// on the host and on the device.
#pragma once

#include "tensor/dtype.h"

#include <cstddef>
#include <span>
#include <vector>

namespace auspex::reference {

// All elements of whole blocks, of any type but u32.
std::vector<double> dequantize(DType dtype, std::span<const std::byte> blocks);

} // namespace auspex::reference
