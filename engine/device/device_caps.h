// What a physical device can do, probed once into a plain struct that everybody reads and tests may edit.
#pragma once

#include "base/status.h"
#include "device/vk_functions.h"

#include <cstdint>
#include <string>
#include <vector>

namespace auspex {

struct DeviceCaps {
    std::string name;
    std::string driver; // name and version
    VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_OTHER;
    uint32_t vendor_id = 0;
    uint32_t driver_id = 0; // VkDriverId, 0 when unknown
    uint32_t driver_version = 0; // as the driver numbers it; Mesa by VK_MAKE_API_VERSION
    uint32_t api_version = 0;

    uint32_t subgroup_size = 0;         // the default one
    uint32_t subgroup_size_min = 0;     // equal to subgroup_size without size control
    uint32_t subgroup_size_max = 0;
    bool subgroup_size_control = false; // enabled: sizes can be pinned and full subgroups required in compute
    bool full_subgroups = false;        // enabled: they can be required; the smallest and the largest size are the device's own words
    bool subgroup_shuffle = false;      // basic and shuffle operations in compute shaders

    bool shader_int64 = false;          // enabled
    bool shader_float16 = false;        // offered, as by devices that are quick at halves; no shader needs it but for matrix units

    bool integer_dots = false;          // enabled: products of four bytes by four, and their sum (VK_KHR_shader_integer_dot_product or 1.3)
    bool quick_integer_dots = false;    // … of signed ones, in an instruction of its own

    // Matrix units as VK_KHR_cooperative_matrix offers them to a subgroup: (m, k) · (k, n) of f16, summed in f32. All 0:
    // none, or not enabled, or without the Vulkan memory model and f16 arithmetic, which shaders need beside them.
    struct MatrixTile {
        uint32_t m = 0, n = 0, k = 0;
        explicit operator bool() const { return k != 0; }
        bool operator==(const MatrixTile&) const = default;
    } matrix;

    uint64_t max_storage_buffer_range = 0; // bytes
    uint64_t max_texels = 0;               // of a texel buffer
    uint64_t max_allocation_bytes = 0;
    uint32_t max_allocations = 0;
    uint32_t max_shared_memory_bytes = 0;
    uint32_t max_workgroup_invocations = 0;
    uint32_t max_workgroup_size_x = 0;
    uint32_t max_groups[3] = {0, 0, 0}; // per grid dimension
    uint32_t max_bound_storage_buffers = 0; // per stage
    uint64_t storage_buffer_alignment = 0; // of texel buffers, too
    float timestamp_period_ns = 0;      // 0: no timestamps on the compute queue
    uint32_t timestamp_valid_bits = 0;
    uint64_t device_local_bytes = 0;    // largest device-local heap
    uint64_t device_free_bytes = 0;     // of that heap when probed, as VK_EXT_memory_budget tells; else all of it

    // Optional features the device offers, for display; what is used says so above.
    std::vector<std::string> features;

    VkPhysicalDeviceMemoryProperties memory = {};
};

Result<std::vector<VkExtensionProperties>> device_extensions(const VkFunctions& vk, VkPhysicalDevice physical_device);

// Storage buffers that the kernel with the most of them binds; the specification guarantees only 4, devices offer more.
constexpr uint32_t kMostBindings = 9;

// What of its driver makes a device unusable, to follow "the device"; empty: nothing.
std::string why_refused(const DeviceCaps& caps);

// Every number of `caps` except what depends on enabled features: those are offered, not yet enabled.
Result<DeviceCaps> probe_caps(const VkFunctions& vk, VkPhysicalDevice physical_device, uint32_t queue_family);

} // namespace auspex
