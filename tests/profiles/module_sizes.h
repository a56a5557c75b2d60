// What a compute module asks of a device once its constants are known.
#pragma once

#include <cstdint>
#include <map>
#include <span>

namespace auspex::test {

struct ModuleSizes {
    uint64_t local_size[3] = {1, 1, 1};
    uint64_t shared_bytes = 0;
    uint64_t invocations() const { return local_size[0] * local_size[1] * local_size[2]; }
};

// spirv: a valid module with one entry point; constants: by constant_id, the others keep their defaults. Throws std::runtime_error with
// the number of an instruction that is not known here.
ModuleSizes sizes_of(std::span<const uint32_t> spirv, const std::map<uint32_t, uint32_t>& constants);

} // namespace auspex::test
