// The devices whose compilers tests ask, and what a kernel may cost there.
#pragma once

#include "compilers/census.h"

#include <ostream>

namespace auspex::test {

struct Family {
    const char* name;     // as the driver or its shim is told
    const char* variable; // of the environment, that tells it
    const char* driver;   // "radeon", "intel", "nouveau": of the file for the Vulkan loader
    const char* vulkan;   // with which the version in that file begins, where the driver is the one that the row is of
    uint64_t few_rows;    // subgroups of a SIMD at once, at least, of passes of one or two rows; 0: nothing is asked
    uint64_t all;         // … of everything
    friend std::ostream& operator<<(std::ostream& out, const Family& family) { return out << family.name; }
};
// RADV 22.3.6 (Debian 12) has a device without hardware, which may be another family at any time.
const std::vector<Family>& radv_families();
// Drivers that a shim makes believe in one device, which the environment of the process names.
const std::vector<Family>& shim_families();

// Has the Vulkan loader find the family's driver and no other. Not empty: why this machine cannot ask it.
std::string choose_driver(const Family& family);

// Empty: the compiler holds the kernel as it should.
std::string fault_of(const CompiledKernel& kernel, const Family& family);

// More rows and outputs at once than its registers hold, to be seen by fault_of.
std::function<void(Tuning&)> sizes_that_do_not_fit(const Family& family);

} // namespace auspex::test
