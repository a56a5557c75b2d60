// The table of devices, and the functions that stand before the driver's.
#include "profiles/device_profile.h"

#include "gpu_test.h"
#include "order/reordered.h"
#include "profiles/module_sizes.h"

#include <cstdlib>
#include <mutex>

namespace auspex::test {
namespace {

constexpr uint32_t k128MiB = 1u << 27;
constexpr uint32_t mesa(uint32_t major, uint32_t minor) { return VK_MAKE_API_VERSION(0, major, minor, 0); }

// As their drivers report them. What is not said is DeviceProfile's own.
const DeviceProfile kMinimum = { // what Vulkan 1.1 requires of every device (table 53, "Required Limits")
    .name = "minimum",
    .type = VK_PHYSICAL_DEVICE_TYPE_OTHER,
    .subgroup_size = 1,
    .subgroup_size_min = 1,
    .subgroup_size_max = 1,
    .shuffles = false,
    .full_subgroups = false,
    .size_control = false,
    .int64 = false,
    .float16 = false,
    .timestamps = false,
    .integer_dots = false,
    .storage_range = k128MiB,
    .texels = 65536,
    .allocation_bytes = 1u << 30,
    .shared_bytes = 16384,
    .invocations = 128,
    .storage_buffers = 4,
    .alignment = 256,
};

DeviceProfile with_enough_bindings() {
    DeviceProfile smallest = kMinimum;
    smallest.name = "smallest";
    smallest.storage_buffers = kMostBindings;
    return smallest;
}

constexpr VkPhysicalDeviceType kIntegrated = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;

const std::vector<DeviceProfile> kProfiles = {
    {.name = "adreno", // 7xx, Qualcomm's driver, with shared memory as 5xx has it
     .vendor_id = 0x5143,
     .driver_id = VK_DRIVER_ID_QUALCOMM_PROPRIETARY,
     .type = kIntegrated,
     .subgroup_size = 64,
     .subgroup_size_min = 64,
     .subgroup_size_max = 128,
     .quick_dots = true,
     .storage_range = k128MiB,
     .texels = 65536,
     .shared_bytes = 16384,
     .storage_buffers = 24,
     .alignment = 64},
    {.name = "mali", // Bifrost, ARM's driver
     .vendor_id = 0x13b5,
     .driver_id = VK_DRIVER_ID_ARM_PROPRIETARY,
     .type = kIntegrated,
     .subgroup_size = 16,
     .subgroup_size_min = 16,
     .subgroup_size_max = 16,
     .shuffles = false,
     .full_subgroups = false,
     .size_control = false,
     .storage_range = k128MiB,
     .texels = 65536,
     .shared_bytes = 16384,
     .invocations = 384,
     .storage_buffers = 35,
     .alignment = 256},
    {.name = "intel", // HD and Iris of Gen9 to Xe, Mesa
     .vendor_id = 0x8086,
     .driver_id = VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA,
     .driver_version = mesa(25, 0),
     .type = kIntegrated,
     .subgroup_size_min = 8,
     .quick_dots = true,
     .storage_range = 1u << 30,
     .alignment = 64},
    {.name = "xe2", // Arc of Battlemage, Mesa: lanes of 16
     .vendor_id = 0x8086,
     .driver_id = VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA,
     .driver_version = mesa(25, 0),
     .subgroup_size_min = 16,
     .quick_dots = true,
     .alignment = 4},
    {.name = "vega", // GCN, RADV
     .vendor_id = 0x1002,
     .driver_id = VK_DRIVER_ID_MESA_RADV,
     .driver_version = mesa(25, 0),
     .subgroup_size = 64,
     .subgroup_size_min = 64,
     .subgroup_size_max = 64,
     .size_control = false,
     .alignment = 4},
    {.name = "rdna", // RADV as Debian 12 has it
     .vendor_id = 0x1002,
     .driver_id = VK_DRIVER_ID_MESA_RADV,
     .driver_version = mesa(22, 3),
     .subgroup_size = 64,
     .subgroup_size_max = 64,
     .quick_dots = true,
     .alignment = 4},
    {.name = "turing", .vendor_id = 0x10de, .driver_id = VK_DRIVER_ID_NVIDIA_PROPRIETARY, .driver_version = 570u << 22, .quick_dots = true},
    {.name = "nvk", // Turing and later, from Mesa 26 on: 16 rows of plain formats, with 2 outputs
     .vendor_id = 0x10de,
     .driver_id = VK_DRIVER_ID_MESA_NVK,
     .driver_version = mesa(26, 2),
     .quick_dots = true},
    {.name = "apple", // M1, MoltenVK 1.3
     .vendor_id = 0x106b,
     .driver_id = VK_DRIVER_ID_MOLTENVK,
     .driver_version = 10300,
     .type = kIntegrated,
     .size_control = false,
     .storage_buffers = 31},
    with_enough_bindings(),
    kMinimum,
};

const DeviceProfile* current = nullptr;
VkFunctions real;
std::mutex mutex; // engines compile on threads of their own
std::map<VkShaderModule, std::vector<uint32_t>> modules;
uint64_t n_allocations = 0;

template <typename T, typename U> void lower(T& limit, U most) { limit = static_cast<T>(std::min<uint64_t>(limit, most)); }

void set_limits(VkPhysicalDeviceProperties& p) {
    p.vendorID = current->vendor_id;
    p.deviceType = current->type;
    p.driverVersion = current->driver_version;
    std::snprintf(p.deviceName, sizeof p.deviceName, "as %s", current->name);
    VkPhysicalDeviceLimits& limits = p.limits;
    lower(limits.maxStorageBufferRange, current->storage_range);
    lower(limits.maxTexelBufferElements, current->texels);
    lower(limits.maxMemoryAllocationCount, current->allocations);
    lower(limits.maxComputeSharedMemorySize, current->shared_bytes);
    lower(limits.maxComputeWorkGroupInvocations, current->invocations);
    lower(limits.maxComputeWorkGroupSize[0], current->invocations);
    for (uint32_t& count : limits.maxComputeWorkGroupCount) lower(count, 65535u);
    lower(limits.maxPerStageDescriptorStorageBuffers, current->storage_buffers);
    lower(limits.maxPushConstantsSize, 128u);
    for (VkDeviceSize* alignment : {&limits.minStorageBufferOffsetAlignment, &limits.minTexelBufferOffsetAlignment})
        *alignment = std::max<VkDeviceSize>(*alignment, current->alignment);
}

VkPhysicalDeviceProperties limits_of(VkPhysicalDevice device) {
    VkPhysicalDeviceProperties p = {};
    real.GetPhysicalDeviceProperties(device, &p);
    set_limits(p);
    return p;
}

void VKAPI_CALL properties(VkPhysicalDevice device, VkPhysicalDeviceProperties* out) { *out = limits_of(device); }

template <typename T> T& as(VkBaseOutStructure* s) { return *reinterpret_cast<T*>(s); }

void VKAPI_CALL properties2(VkPhysicalDevice device, VkPhysicalDeviceProperties2* out) {
    real.GetPhysicalDeviceProperties2(device, out);
    set_limits(out->properties);
    for (auto* next = static_cast<VkBaseOutStructure*>(out->pNext); next; next = next->pNext) {
        if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES) {
            auto& p = as<VkPhysicalDeviceSubgroupProperties>(next);
            p.subgroupSize = current->subgroup_size;
            if (!current->shuffles) p.supportedOperations &= ~VkSubgroupFeatureFlags{VK_SUBGROUP_FEATURE_SHUFFLE_BIT};
        } else if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES) {
            auto& p = as<VkPhysicalDeviceSubgroupSizeControlProperties>(next);
            p.minSubgroupSize = current->subgroup_size_min;
            p.maxSubgroupSize = current->subgroup_size_max;
        } else if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES) {
            lower(as<VkPhysicalDeviceMaintenance3Properties>(next).maxMemoryAllocationSize, current->allocation_bytes);
        } else if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES) {
            auto& p = as<VkPhysicalDeviceDriverProperties>(next);
            p.driverID = static_cast<VkDriverId>(current->driver_id);
            std::snprintf(p.driverName, sizeof p.driverName, "profile");
            std::snprintf(p.driverInfo, sizeof p.driverInfo, "%s", current->name);
        } else if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES) {
            as<VkPhysicalDeviceShaderIntegerDotProductProperties>(next).integerDotProduct4x8BitPackedSignedAccelerated = current->quick_dots;
        }
    }
}

void VKAPI_CALL features2(VkPhysicalDevice device, VkPhysicalDeviceFeatures2* out) {
    real.GetPhysicalDeviceFeatures2(device, out);
    if (!current->int64) out->features.shaderInt64 = VK_FALSE;
    for (auto* next = static_cast<VkBaseOutStructure*>(out->pNext); next; next = next->pNext) {
        if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES) {
            auto& f = as<VkPhysicalDeviceSubgroupSizeControlFeatures>(next);
            if (!current->size_control) f.subgroupSizeControl = VK_FALSE;
            if (!current->full_subgroups) f.computeFullSubgroups = VK_FALSE;
        } else if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES) {
            if (!current->float16) as<VkPhysicalDeviceShaderFloat16Int8Features>(next).shaderFloat16 = VK_FALSE;
        } else if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES) {
            if (!current->integer_dots) as<VkPhysicalDeviceShaderIntegerDotProductFeatures>(next).shaderIntegerDotProduct = VK_FALSE;
        }
    }
}

void VKAPI_CALL queue_families(VkPhysicalDevice device, uint32_t* n, VkQueueFamilyProperties* out) {
    real.GetPhysicalDeviceQueueFamilyProperties(device, n, out);
    if (out && !current->timestamps)
        for (uint32_t i = 0; i < *n; ++i) out[i].timestampValidBits = 0;
}

#define AUSPEX_EXPECT_WITHIN(what, found, most)                                                                        \
    do {                                                                                                               \
        const uint64_t auspex_found = (found), auspex_most = (most);                                                   \
        if (auspex_found > auspex_most) ADD_FAILURE() << (what) << ": " << auspex_found << ", " << current->name << " allows " << auspex_most; \
    } while (0)

VkResult VKAPI_CALL create_module(VkDevice device, const VkShaderModuleCreateInfo* info, const VkAllocationCallbacks* callbacks, VkShaderModule* out) {
    const VkResult result = real.CreateShaderModule(device, info, callbacks, out);
    const std::lock_guard lock(mutex);
    if (result == VK_SUCCESS) modules[*out].assign(info->pCode, info->pCode + info->codeSize / 4);
    return result;
}

VkResult VKAPI_CALL create_pipelines(VkDevice device, VkPipelineCache cache, uint32_t n, const VkComputePipelineCreateInfo* infos,
                                     const VkAllocationCallbacks* callbacks, VkPipeline* out) {
    for (uint32_t i = 0; i < n; ++i) {
        std::map<uint32_t, uint32_t> constants;
        if (const VkSpecializationInfo* given = infos[i].stage.pSpecializationInfo)
            for (uint32_t c = 0; c < given->mapEntryCount; ++c)
                std::memcpy(&constants[given->pMapEntries[c].constantID], static_cast<const char*>(given->pData) + given->pMapEntries[c].offset, 4);
        const std::lock_guard lock(mutex);
        const ModuleSizes sizes = sizes_of(modules.at(infos[i].stage.module), constants);
        AUSPEX_EXPECT_WITHIN("invocations of a workgroup", sizes.invocations(), current->invocations);
        AUSPEX_EXPECT_WITHIN("bytes of shared memory", sizes.shared_bytes, current->shared_bytes);
    }
    return real.CreateComputePipelines(device, cache, n, infos, callbacks, out);
}

VkResult VKAPI_CALL create_set_layout(VkDevice device, const VkDescriptorSetLayoutCreateInfo* info, const VkAllocationCallbacks* callbacks, VkDescriptorSetLayout* out) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < info->bindingCount; ++i) n += info->pBindings[i].descriptorType == VK_DESCRIPTOR_TYPE_STORAGE_BUFFER ? 1 : 0;
    AUSPEX_EXPECT_WITHIN("storage buffers", n, current->storage_buffers);
    return real.CreateDescriptorSetLayout(device, info, callbacks, out);
}

VkResult VKAPI_CALL create_layout(VkDevice device, const VkPipelineLayoutCreateInfo* info, const VkAllocationCallbacks* callbacks, VkPipelineLayout* out) {
    for (uint32_t i = 0; i < info->pushConstantRangeCount; ++i) AUSPEX_EXPECT_WITHIN("bytes of push constants", info->pPushConstantRanges[i].size, 128);
    return real.CreatePipelineLayout(device, info, callbacks, out);
}

void VKAPI_CALL update_sets(VkDevice device, uint32_t n, const VkWriteDescriptorSet* writes, uint32_t n_copies, const VkCopyDescriptorSet* copies) {
    for (uint32_t i = 0; i < n; ++i)
        if (writes[i].descriptorType == VK_DESCRIPTOR_TYPE_STORAGE_BUFFER)
            for (uint32_t k = 0; k < writes[i].descriptorCount; ++k) {
                AUSPEX_EXPECT_WITHIN("bytes of a binding", writes[i].pBufferInfo[k].range, current->storage_range);
                AUSPEX_EXPECT_WITHIN("bytes beyond the alignment of a binding", writes[i].pBufferInfo[k].offset % current->alignment, 0);
            }
    real.UpdateDescriptorSets(device, n, writes, n_copies, copies);
}

VkResult VKAPI_CALL create_view(VkDevice device, const VkBufferViewCreateInfo* info, const VkAllocationCallbacks* callbacks, VkBufferView* out) {
    constexpr uint64_t kLargestTexel = 16;
    AUSPEX_EXPECT_WITHIN("texels of a view", info->range / kLargestTexel, current->texels);
    return real.CreateBufferView(device, info, callbacks, out);
}

VkResult VKAPI_CALL allocate(VkDevice device, const VkMemoryAllocateInfo* info, const VkAllocationCallbacks* callbacks, VkDeviceMemory* out) {
    AUSPEX_EXPECT_WITHIN("bytes of an allocation", info->allocationSize, current->allocation_bytes);
    const VkResult result = real.AllocateMemory(device, info, callbacks, out);
    const std::lock_guard lock(mutex);
    n_allocations += result == VK_SUCCESS ? 1 : 0;
    AUSPEX_EXPECT_WITHIN("allocations", n_allocations, current->allocations);
    return result;
}

void VKAPI_CALL free_memory(VkDevice device, VkDeviceMemory memory, const VkAllocationCallbacks* callbacks) {
    const std::lock_guard lock(mutex);
    n_allocations -= memory ? 1 : 0;
    real.FreeMemory(device, memory, callbacks);
}

void VKAPI_CALL dispatch(VkCommandBuffer commands, uint32_t x, uint32_t y, uint32_t z) {
    for (const uint32_t count : {x, y, z}) AUSPEX_EXPECT_WITHIN("workgroups of a dispatch", count, 65535);
    real.CmdDispatch(commands, x, y, z);
}

// Ours stands before the driver's, which the table may have been given anew by a second device.
template <typename F> void put(VkFunctions& vk, F VkFunctions::*function, F ours) {
    if (!(vk.*function) || vk.*function == ours) return;
    real.*function = vk.*function;
    vk.*function = ours;
}

} // namespace

std::span<const DeviceProfile> device_profiles() {
    return kProfiles;
}

const DeviceProfile* find_profile(std::string_view name) {
    for (const DeviceProfile& profile : device_profiles())
        if (profile.name == name) return &profile;
    return nullptr;
}

VkHook under(const DeviceProfile& profile, VkHook then) {
    return [&profile, then](VkFunctions& vk) {
        current = &profile;
        put(vk, &VkFunctions::GetPhysicalDeviceProperties, properties);
        put(vk, &VkFunctions::GetPhysicalDeviceProperties2, properties2);
        put(vk, &VkFunctions::GetPhysicalDeviceFeatures2, features2);
        put(vk, &VkFunctions::GetPhysicalDeviceQueueFamilyProperties, queue_families);
        put(vk, &VkFunctions::CreateShaderModule, create_module);
        put(vk, &VkFunctions::CreateComputePipelines, create_pipelines);
        put(vk, &VkFunctions::CreateDescriptorSetLayout, create_set_layout);
        put(vk, &VkFunctions::CreatePipelineLayout, create_layout);
        put(vk, &VkFunctions::UpdateDescriptorSets, update_sets);
        put(vk, &VkFunctions::CreateBufferView, create_view);
        put(vk, &VkFunctions::AllocateMemory, allocate);
        put(vk, &VkFunctions::FreeMemory, free_memory);
        put(vk, &VkFunctions::CmdDispatch, dispatch);
        if (then) then(vk);
    };
}

Tuning runnable(Tuning tuning) {
    // What the device under the hook has: one size, of 8 on lavapipe.
    static const uint32_t lanes = [] {
        auto device = Device::create({}, Logger{});
        return device.ok() ? device.value()->caps.subgroup_size : 0;
    }();
    if (tuning.subgroup && tuning.lanes == lanes) return tuning;
    tuning.subgroup = tuning.wide = tuning.texels = tuning.full_subgroups = false;
    tuning.pinned_subgroup_size = 0;
    if (tuning.matrix) tuning.matrix = {}, tuning.matmul_parts = tuning.matmul_parts == 1 ? 1 : 0; // units want the device's lanes
    return tuning;
}

const DeviceProfile* profile_of_process() {
    static const DeviceProfile* profile = [] {
        const char* name = std::getenv("AUSPEX_TEST_PROFILE");
        if (!name || !*name) return static_cast<const DeviceProfile*>(nullptr);
        const DeviceProfile* found = find_profile(name);
        if (found) return found;
        std::fprintf(stderr, "AUSPEX_TEST_PROFILE is \"%s\", expected one of:", name);
        for (const DeviceProfile& one : device_profiles()) std::fprintf(stderr, " %s", one.name);
        std::fprintf(stderr, "\n");
        std::exit(2);
    }();
    return profile;
}

void keep_driver_loaded() {
    // To the very end: layers are gone before static objects are. Volatile, so that the pointer is there for whoever looks for leaks.
    static const auto* volatile held = new auto(Device::create({}, Logger{}));
    (void)held;
}

Result<std::unique_ptr<Device>> create_device(DeviceChoice choice, const Logger& log) {
    keep_driver_loaded();
    if (process_is_reordered()) choice.hook = reordering(choice.hook);
    if (const DeviceProfile* profile = profile_of_process()) choice.hook = under(*profile, choice.hook);
    return Device::create(choice, log);
}

Tuning device_tuning(const DeviceCaps& caps, DType cache_dtype) {
    const Tuning tuning = choose_tuning(caps, cache_dtype);
    return profile_of_process() ? runnable(tuning) : tuning;
}

} // namespace auspex::test
