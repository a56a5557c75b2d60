// Probes a physical device once.
#include "device/device_caps.h"

#include "base/platform.h"
#include "device/device.h"

#include <algorithm>
#include <cstring>

namespace auspex {

namespace {

bool has_extension(const std::vector<VkExtensionProperties>& extensions, const char* name) {
    return std::any_of(extensions.begin(), extensions.end(),
                       [&](const VkExtensionProperties& e) { return std::strcmp(e.extensionName, name) == 0; });
}

// Optional features worth telling a user about. Only listed, never required.
const char* const kInterestingExtensions[] = {
    "VK_EXT_subgroup_size_control", "VK_KHR_16bit_storage",      "VK_KHR_8bit_storage",
    "VK_KHR_shader_float16_int8",   "VK_KHR_timeline_semaphore", "VK_KHR_synchronization2",
    "VK_KHR_cooperative_matrix",    "VK_NV_cooperative_matrix2", "VK_KHR_shader_integer_dot_product",
    "VK_EXT_memory_budget",         "VK_KHR_buffer_device_address"};

std::string driver_text(const VkPhysicalDeviceProperties& p, const VkPhysicalDeviceDriverProperties& driver) {
    std::string version = std::to_string(VK_API_VERSION_MAJOR(p.driverVersion)) + "." +
                          std::to_string(VK_API_VERSION_MINOR(p.driverVersion)) + "." +
                          std::to_string(VK_API_VERSION_PATCH(p.driverVersion));
    if (driver.driverID == 0) return version;
    return std::string(driver.driverName) + " " + (driver.driverInfo[0] ? std::string(driver.driverInfo) : version);
}

} // namespace

Result<std::vector<VkExtensionProperties>> device_extensions(const VkFunctions& vk, VkPhysicalDevice physical_device) {
    const char* call = "vkEnumerateDeviceExtensionProperties";
    uint32_t n = 0;
    AUSPEX_TRY(vk_status(vk.EnumerateDeviceExtensionProperties(physical_device, nullptr, &n, nullptr), call));
    std::vector<VkExtensionProperties> extensions(n);
    AUSPEX_TRY(vk_status(vk.EnumerateDeviceExtensionProperties(physical_device, nullptr, &n, extensions.data()), call));
    extensions.resize(n);
    return extensions;
}

namespace {
// Budgets larger than their heap have been seen, hence the clamps.
void probe_memory(const VkFunctions& vk, VkPhysicalDevice physical_device, bool has_budget, DeviceCaps& caps) {
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {};
    budget.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT;
    VkPhysicalDeviceMemoryProperties2 properties = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, nullptr, {}};
    if (has_budget) properties.pNext = &budget;
    vk.GetPhysicalDeviceMemoryProperties2(physical_device, &properties);
    caps.memory = properties.memoryProperties;
    for (uint32_t i = 0; i < caps.memory.memoryHeapCount; ++i) {
        const VkMemoryHeap& heap = caps.memory.memoryHeaps[i];
        if (!(heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) || heap.size <= caps.device_local_bytes) continue;
        const uint64_t limit = has_budget ? std::min<uint64_t>(heap.size, budget.heapBudget[i]) : heap.size;
        caps.device_local_bytes = heap.size;
        caps.device_free_bytes = limit - std::min<uint64_t>(limit, has_budget ? budget.heapUsage[i] : 0);
    }
    if (caps.type != VK_PHYSICAL_DEVICE_TYPE_CPU) return;
    // A CPU's heap is the machine's memory, whatever size the driver made up (lavapipe of Mesa 22: 2 GiB).
    const HostMemory host = host_memory();
    if (host.total > 0) {
        caps.device_local_bytes = host.total;
        caps.device_free_bytes = host.available;
    }
}
} // namespace

namespace {
// The tile with the most products among those that the shaders' tiles are multiples of: edges of 8 or 16.
Result<DeviceCaps::MatrixTile> probe_matrix(const VkFunctions& vk, VkPhysicalDevice physical_device) {
    VkPhysicalDeviceFeatures2 features = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, nullptr, {}};
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrix = {};
    matrix.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR;
    VkPhysicalDeviceVulkanMemoryModelFeatures model = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES, &matrix, 0, 0, 0};
    VkPhysicalDeviceShaderFloat16Int8Features half = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES, &model, 0, 0};
    features.pNext = &half;
    vk.GetPhysicalDeviceFeatures2(physical_device, &features);
    if (!matrix.cooperativeMatrix || !model.vulkanMemoryModel || !model.vulkanMemoryModelDeviceScope || !half.shaderFloat16) return DeviceCaps::MatrixTile{};
    VkPhysicalDeviceCooperativeMatrixPropertiesKHR stages = {};
    stages.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
    VkPhysicalDeviceProperties2 properties = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &stages, {}};
    vk.GetPhysicalDeviceProperties2(physical_device, &properties);
    if (!(stages.cooperativeMatrixSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT)) return DeviceCaps::MatrixTile{};

    const char* call = "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR";
    uint32_t n = 0;
    AUSPEX_TRY(vk_status(vk.GetPhysicalDeviceCooperativeMatrixPropertiesKHR(physical_device, &n, nullptr), call));
    VkCooperativeMatrixPropertiesKHR unset = {};
    unset.sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
    std::vector<VkCooperativeMatrixPropertiesKHR> offered(n, unset);
    AUSPEX_TRY(vk_status(vk.GetPhysicalDeviceCooperativeMatrixPropertiesKHR(physical_device, &n, offered.data()), call));
    offered.resize(n);
    auto fits = [](uint32_t edge) { return edge == 8 || edge == 16; };
    DeviceCaps::MatrixTile best;
    for (const VkCooperativeMatrixPropertiesKHR& p : offered) {
        const bool halves = p.AType == VK_COMPONENT_TYPE_FLOAT16_KHR && p.BType == VK_COMPONENT_TYPE_FLOAT16_KHR &&
                            p.CType == VK_COMPONENT_TYPE_FLOAT32_KHR && p.ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR;
        if (!halves || p.saturatingAccumulation || p.scope != VK_SCOPE_SUBGROUP_KHR || !fits(p.MSize) || !fits(p.NSize) || !fits(p.KSize)) continue;
        if (p.MSize * p.NSize * p.KSize > best.m * best.n * best.k) best = {p.MSize, p.NSize, p.KSize};
    }
    return best;
}
} // namespace

std::string why_refused(const DeviceCaps& caps) {
    // MoltenVK numbers 1.2.3 as 10203. Older ones give arrays the size of a constant's default: texts would be wrong.
    const uint32_t v = caps.driver_version;
    if (caps.driver_id != VK_DRIVER_ID_MOLTENVK || v >= 10300) return "";
    return "is driven by MoltenVK " + std::to_string(v / 10000) + "." + std::to_string(v / 100 % 100) + "." + std::to_string(v % 100) +
           ", which does not heed the constants that shaders' arrays are sized by; 1.3.0 or later is needed";
}

Result<DeviceCaps> probe_caps(const VkFunctions& vk, VkPhysicalDevice physical_device, uint32_t queue_family) {
    AUSPEX_TRY_ASSIGN(extensions, device_extensions(vk, physical_device));

    VkPhysicalDeviceProperties plain = {};
    vk.GetPhysicalDeviceProperties(physical_device, &plain);
    bool core13 = plain.apiVersion >= VK_API_VERSION_1_3;
    bool has_size_control = core13 || has_extension(extensions, "VK_EXT_subgroup_size_control");
    bool has_integer_dots = core13 || has_extension(extensions, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
    bool has_float16 = plain.apiVersion >= VK_API_VERSION_1_2 || has_extension(extensions, "VK_KHR_shader_float16_int8");

    VkPhysicalDeviceProperties2 properties = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, nullptr, {}};
    VkPhysicalDeviceSubgroupProperties subgroup = {};
    subgroup.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES;
    VkPhysicalDeviceMaintenance3Properties maintenance3 = {};
    maintenance3.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES;
    VkPhysicalDeviceDriverProperties driver = {}; // stays 0 where it is not told
    driver.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES;
    VkPhysicalDeviceSubgroupSizeControlProperties size_control = {};
    size_control.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES;
    properties.pNext = &subgroup;
    subgroup.pNext = &maintenance3;
    if (plain.apiVersion >= VK_API_VERSION_1_2 || has_extension(extensions, "VK_KHR_driver_properties")) maintenance3.pNext = &driver;
    if (has_size_control) {
        size_control.pNext = maintenance3.pNext;
        maintenance3.pNext = &size_control;
    }
    VkPhysicalDeviceShaderIntegerDotProductProperties dots = {};
    dots.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES;
    if (has_integer_dots) {
        dots.pNext = properties.pNext;
        properties.pNext = &dots;
    }
    vk.GetPhysicalDeviceProperties2(physical_device, &properties);

    VkPhysicalDeviceFeatures2 features = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, nullptr, {}};
    VkPhysicalDeviceSubgroupSizeControlFeatures size_features = {};
    size_features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES;
    VkPhysicalDeviceShaderFloat16Int8Features half = {};
    half.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES;
    if (has_size_control) features.pNext = &size_features;
    if (has_float16) {
        half.pNext = features.pNext;
        features.pNext = &half;
    }
    VkPhysicalDeviceShaderIntegerDotProductFeatures dot_features = {};
    dot_features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES;
    if (has_integer_dots) {
        dot_features.pNext = features.pNext;
        features.pNext = &dot_features;
    }
    vk.GetPhysicalDeviceFeatures2(physical_device, &features);

    const VkPhysicalDeviceLimits& limits = plain.limits;
    DeviceCaps caps;
    caps.name = plain.deviceName;
    caps.driver = driver_text(plain, driver);
    caps.type = plain.deviceType;
    caps.vendor_id = plain.vendorID;
    caps.driver_id = static_cast<uint32_t>(driver.driverID);
    caps.driver_version = plain.driverVersion;
    caps.api_version = plain.apiVersion;
    caps.subgroup_size = caps.subgroup_size_min = caps.subgroup_size_max = subgroup.subgroupSize;
    const VkSubgroupFeatureFlags shuffle = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
    caps.subgroup_shuffle = (subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 &&
                            (subgroup.supportedOperations & shuffle) == shuffle;
    if (has_size_control) {
        caps.subgroup_size_min = size_control.minSubgroupSize;
        caps.subgroup_size_max = size_control.maxSubgroupSize;
        caps.full_subgroups = size_features.computeFullSubgroups == VK_TRUE;
        caps.subgroup_size_control = size_features.subgroupSizeControl && caps.full_subgroups &&
                                     (size_control.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
    }
    caps.shader_int64 = features.features.shaderInt64 == VK_TRUE;
    caps.integer_dots = dot_features.shaderIntegerDotProduct == VK_TRUE;
    caps.quick_integer_dots = caps.integer_dots && dots.integerDotProduct4x8BitPackedSignedAccelerated == VK_TRUE;
    caps.shader_float16 = half.shaderFloat16 == VK_TRUE;
    // Cores of 1.2 carry the memory model and f16 arithmetic; no older device has matrices.
    if (plain.apiVersion >= VK_API_VERSION_1_2 && has_extension(extensions, VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME) &&
        vk.GetPhysicalDeviceCooperativeMatrixPropertiesKHR) {
        AUSPEX_TRY_ASSIGN(tile, probe_matrix(vk, physical_device));
        caps.matrix = tile;
    }
    caps.max_storage_buffer_range = limits.maxStorageBufferRange;
    caps.max_texels = limits.maxTexelBufferElements;
    caps.max_allocation_bytes = maintenance3.maxMemoryAllocationSize;
    caps.max_allocations = limits.maxMemoryAllocationCount;
    caps.max_shared_memory_bytes = limits.maxComputeSharedMemorySize;
    caps.max_workgroup_invocations = limits.maxComputeWorkGroupInvocations;
    caps.max_workgroup_size_x = limits.maxComputeWorkGroupSize[0];
    for (int i = 0; i < 3; ++i) caps.max_groups[i] = std::min(limits.maxComputeWorkGroupCount[i], 65535u);
    caps.max_bound_storage_buffers = limits.maxPerStageDescriptorStorageBuffers;
    caps.storage_buffer_alignment = std::max<uint64_t>({limits.minStorageBufferOffsetAlignment, limits.minTexelBufferOffsetAlignment, 16});

    uint32_t n_families = 0;
    vk.GetPhysicalDeviceQueueFamilyProperties(physical_device, &n_families, nullptr);
    std::vector<VkQueueFamilyProperties> families(n_families);
    vk.GetPhysicalDeviceQueueFamilyProperties(physical_device, &n_families, families.data());
    if (queue_family < n_families && families[queue_family].timestampValidBits > 0) {
        caps.timestamp_period_ns = limits.timestampPeriod;
        caps.timestamp_valid_bits = families[queue_family].timestampValidBits;
    }
    probe_memory(vk, physical_device, has_extension(extensions, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME), caps);
    for (const char* name : kInterestingExtensions)
        if (has_extension(extensions, name)) caps.features.emplace_back(name);
    if (caps.shader_int64) caps.features.emplace_back("shaderInt64");
    return caps;
}

} // namespace auspex
