// What the device's memory can do: a copy kernel over more than the caches hold. Waits; for tools.
#pragma once

#include "kernels/kernel_library.h"

namespace auspex {

struct CopySpeed {
    uint64_t bytes = 0; // of one copy: read and written, both counted
    double ms = 0;      // median; of the GPU's clock where it has one, else of the host's
    double gb_per_second() const { return ms > 0 ? static_cast<double>(bytes) * 1e-6 / ms : 0; } // 1e9 bytes
};

// Takes up to 2 × 256 MiB of device memory meanwhile, less where there is less. Nothing else may be under way.
Result<CopySpeed> measure_copy(Device& device, KernelLibrary& kernels, uint32_t repetitions);

} // namespace auspex
