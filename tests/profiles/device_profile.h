// Other devices' limits and features over the real device, through DeviceChoice.hook: what the engine asks is answered as that device
// would, and what it then does beyond these limits fails the test. Whatever limit the real device has remains. The subgroup stays the
// real device's: where a profile's tuning wants another, it runs through shared memory, in the same order of additions.
#pragma once

#include "device/device.h"
#include "kernels/tuning.h"

#include <span>

namespace auspex::test {

struct DeviceProfile {
    const char* name;
    uint32_t vendor_id = 0, driver_id = 0, driver_version = 0;
    VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    uint32_t subgroup_size = 32, subgroup_size_min = 32, subgroup_size_max = 32;
    bool shuffles = true, full_subgroups = true, size_control = true;
    bool int64 = true, float16 = true, timestamps = true;
    bool integer_dots = true, quick_dots = false; // products of four bytes; in one instruction
    uint64_t storage_range = ~0u, texels = 1u << 27, allocation_bytes = 1u << 31;
    uint32_t allocations = 4096;
    uint32_t shared_bytes = 32768;
    uint32_t invocations = 1024;
    uint32_t storage_buffers = 32;
    uint32_t alignment = 16; // of storage and texel buffers
};

// Adreno, Mali … , as their drivers report them; the specification's minimum last, twice: as it is, and with enough bindings.
std::span<const DeviceProfile> device_profiles();
const DeviceProfile* find_profile(std::string_view name); // null: none of that name

// One profile at a time in a process. then: called after it, with the table as it left it.
VkHook under(const DeviceProfile& profile, VkHook then = {});
// What runs on the real device of what choose_tuning gave under a profile: other lanes than its own go through shared memory.
Tuning runnable(Tuning tuning);

// The profile that AUSPEX_TEST_PROFILE names, under which tests of kernels and engines run; null: the real device. Another name ends
// the program.
const DeviceProfile* profile_of_process();
// NVIDIA's driver can be loaded 30 times in a process (580.159, seen): a program that opens more devices, one after the other, calls this.
void keep_driver_loaded();
// Device::create and choose_tuning under it.
Result<std::unique_ptr<Device>> create_device(DeviceChoice choice, const Logger& log);
Tuning device_tuning(const DeviceCaps& caps, DType cache_dtype = DType::f16);

} // namespace auspex::test
