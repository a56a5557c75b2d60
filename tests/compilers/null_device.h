// A driver that has a compiler and no device (RADV's null device, Mesa's drm-shim), made to look like one through
// DeviceChoice.hook: memory is the host's, nothing runs, and what the compiler says of each pipeline is noted
// (VK_KHR_pipeline_executable_properties). One at a time in a process.
#pragma once

#include "device/device.h"

#include <map>
#include <string>
#include <vector>

namespace auspex::test {

struct CompiledKernel {
    std::string name;                // of the module: "matvec.quant.subgroup"
    std::vector<uint32_t> constants; // by constant_id
    uint32_t pinned = 0;             // subgroup size that was required; 0: the driver's choice
    uint32_t subgroup_size = 0;      // that came out
    bool failed = false;
    double ms = 0; // CPU time of the call
    std::map<std::string, uint64_t> statistics; // as the driver names them

    // Under any of the names that drivers give to one thing; `otherwise` where none of them says it.
    uint64_t registers() const { return find({"VGPRs", "Register count", "Registers", "Number of GPRs", "GPRs"}, 0); }
    uint64_t spills() const { return find({"Spilled VGPRs", "Spill count", "Spill Count", "Spills to memory", "Spills"}, 0); }
    uint64_t scratch(uint64_t otherwise = 0) const { return find({"Scratch size", "Scratch Memory Size", "SLM size", "SLM Size"}, otherwise); }
    uint64_t occupancy() const { return find({"Subgroups per SIMD", "Max warps/SM"}, ~0ull); } // waves; ~0: not said
    uint64_t instructions() const { return find({"Instructions", "Instruction Count", "Instruction count"}, 0); }
    uint64_t shared_bytes() const { return find({"LDS size", "Workgroup Memory Size"}, 0); }

  private:
    uint64_t find(std::initializer_list<const char*> names, uint64_t otherwise) const;
};

// Every pipeline made since, in order; a pair of module and constants that comes again is there again.
std::vector<CompiledKernel>& compiled_kernels();

VkHook null_device();

} // namespace auspex::test
