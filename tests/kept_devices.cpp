// Objects are found by what they were made from, as bytes. Any thread of any engine may call.
#include "kept_devices.h"

#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace auspex::test {
namespace {

template <typename T> uint64_t number_of(T handle) {
    if constexpr (std::is_pointer_v<T>) return reinterpret_cast<uint64_t>(handle);
    else return static_cast<uint64_t>(handle);
}
template <typename T> T handle_of(uint64_t number) {
    if constexpr (std::is_pointer_v<T>) return reinterpret_cast<T>(number);
    else return static_cast<T>(number);
}

void append(std::string& key, const void* data, size_t bytes) {
    if (bytes > 0) key.append(static_cast<const char*>(data), bytes);
}
template <typename T> void append(std::string& key, const T& value) {
    static_assert(std::has_unique_object_representations_v<T>);
    append(key, &value, sizeof(T));
}

// What llvmpipe made of a pipeline takes megabytes: a device that has more begins anew with the next engine.
constexpr size_t kMostObjects = 300;

struct Object {
    uint64_t number;
    std::function<void()> destroy;
};
struct KeptDevice {
    std::string made_from;
    bool in_use = true;
    std::unordered_map<std::string, Object> objects; // by what they were made from
};

struct Kept {
    std::mutex mutex;
    VkFunctions real; // the driver's
    VkInstance instance = VK_NULL_HANDLE;
    std::unordered_map<VkDevice, KeptDevice> devices;
    std::unordered_set<uint64_t> objects; // of all devices
    std::unordered_map<std::string, uint64_t> codes;      // SPIR-V → its number
    std::unordered_map<uint64_t, uint64_t> code_of_module;

    bool has(uint64_t object) {
        const std::lock_guard lock(mutex);
        return objects.contains(object);
    }
};
// Lives until the process has ended, as what it holds does.
Kept& kept() {
    static Kept& all = *new Kept;
    return all;
}

// The object of this key, made at the first call. Without a key, and on a device that is not kept: a new one.
template <typename Handle, typename Make, typename Destroy>
VkResult keep(VkDevice device, const std::optional<std::string>& key, Handle* out, Make make, Destroy destroy) {
    bool is_kept = false;
    {
        const std::lock_guard lock(kept().mutex);
        if (const auto found = kept().devices.find(device); found != kept().devices.end() && key) {
            is_kept = true;
            if (const auto object = found->second.objects.find(*key); object != found->second.objects.end()) {
                *out = handle_of<Handle>(object->second.number);
                return VK_SUCCESS;
            }
        }
    }
    const VkResult result = make(out); // may take long: other threads go on
    if (result != VK_SUCCESS || !is_kept) return result;
    const std::lock_guard lock(kept().mutex);
    const auto [object, is_new] = kept().devices.at(device).objects.emplace(*key, Object{number_of(*out), [destroy, made = *out] { destroy(made); }});
    if (!is_new) { // another thread was first
        destroy(*out);
        *out = handle_of<Handle>(object->second.number);
    }
    kept().objects.insert(object->second.number);
    return VK_SUCCESS;
}

// ---- instance and devices ----

VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo* info, const VkAllocationCallbacks* callbacks, VkInstance* instance) {
    const std::lock_guard lock(kept().mutex);
    if (!kept().instance) {
        const VkResult result = kept().real.CreateInstance(info, callbacks, &kept().instance);
        if (result != VK_SUCCESS) {
            kept().instance = VK_NULL_HANDLE;
            return result;
        }
    }
    *instance = kept().instance;
    return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL destroy_instance(VkInstance, const VkAllocationCallbacks*) {}

// What a device was made from; nothing where it is more than Device::make_handle asks for.
std::optional<std::string> key_of(VkPhysicalDevice physical_device, const VkDeviceCreateInfo& info) {
    std::string key;
    append(key, number_of(physical_device));
    for (uint32_t i = 0; i < info.enabledExtensionCount; ++i) key += std::string(info.ppEnabledExtensionNames[i]) + '\n';
    for (uint32_t i = 0; i < info.queueCreateInfoCount; ++i) append(key, info.pQueueCreateInfos[i].queueFamilyIndex);
    for (auto next = static_cast<const VkBaseInStructure*>(info.pNext); next; next = next->pNext) {
        size_t bytes = 0;
        switch (uint32_t(next->sType)) { // one is newer than some headers
        case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2: bytes = sizeof(VkPhysicalDeviceFeatures2); break;
        case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES: bytes = sizeof(VkPhysicalDeviceSubgroupSizeControlFeatures); break;
        case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR: bytes = sizeof(VkPhysicalDeviceCooperativeMatrixFeaturesKHR); break;
        case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES: bytes = sizeof(VkPhysicalDeviceVulkanMemoryModelFeatures); break;
        case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES: bytes = sizeof(VkPhysicalDeviceShaderFloat16Int8Features); break;
        default: return std::nullopt;
        }
        append(key, next->sType);
        append(key, reinterpret_cast<const char*>(next) + sizeof(VkBaseInStructure), bytes - sizeof(VkBaseInStructure));
    }
    return key;
}

VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical_device, const VkDeviceCreateInfo* info, const VkAllocationCallbacks* callbacks,
                                             VkDevice* device) {
    const std::lock_guard lock(kept().mutex);
    const auto key = key_of(physical_device, *info);
    for (auto& [handle, one] : kept().devices)
        if (key && !one.in_use && one.made_from == *key) {
            one.in_use = true;
            *device = handle;
            return VK_SUCCESS;
        }
    const VkResult result = kept().real.CreateDevice(physical_device, info, callbacks, device);
    if (result == VK_SUCCESS && key) kept().devices[*device].made_from = *key;
    return result;
}
void give_up(std::unordered_map<VkDevice, KeptDevice>::iterator device) {
    for (const auto& [key, object] : device->second.objects) {
        object.destroy();
        kept().objects.erase(object.number);
    }
    kept().real.DestroyDevice(device->first, nullptr);
    kept().devices.erase(device);
}

VKAPI_ATTR void VKAPI_CALL destroy_device(VkDevice device, const VkAllocationCallbacks* callbacks) {
    const std::lock_guard lock(kept().mutex);
    const auto found = kept().devices.find(device);
    if (found == kept().devices.end()) return kept().real.DestroyDevice(device, callbacks);
    found->second.in_use = false;
    if (found->second.objects.size() > kMostObjects) give_up(found);
}

// ---- layouts and pipelines ----

VKAPI_ATTR VkResult VKAPI_CALL create_set_layout(VkDevice device, const VkDescriptorSetLayoutCreateInfo* info, const VkAllocationCallbacks* callbacks,
                                                 VkDescriptorSetLayout* out) {
    std::string key = "set layout";
    append(key, info->flags);
    for (uint32_t i = 0; i < info->bindingCount; ++i) {
        const VkDescriptorSetLayoutBinding& binding = info->pBindings[i];
        append(key, binding.binding);
        append(key, binding.descriptorType);
        append(key, binding.descriptorCount);
        append(key, binding.stageFlags);
    }
    return keep(device, key, out, [&](VkDescriptorSetLayout* made) { return kept().real.CreateDescriptorSetLayout(device, info, callbacks, made); },
                [device](VkDescriptorSetLayout made) { kept().real.DestroyDescriptorSetLayout(device, made, nullptr); });
}
VKAPI_ATTR void VKAPI_CALL destroy_set_layout(VkDevice device, VkDescriptorSetLayout layout, const VkAllocationCallbacks* callbacks) {
    if (!kept().has(number_of(layout))) kept().real.DestroyDescriptorSetLayout(device, layout, callbacks);
}

VKAPI_ATTR VkResult VKAPI_CALL create_layout(VkDevice device, const VkPipelineLayoutCreateInfo* info, const VkAllocationCallbacks* callbacks, VkPipelineLayout* out) {
    std::string key = "layout";
    append(key, info->flags);
    for (uint32_t i = 0; i < info->setLayoutCount; ++i) append(key, number_of(info->pSetLayouts[i]));
    for (uint32_t i = 0; i < info->pushConstantRangeCount; ++i) append(key, info->pPushConstantRanges[i]);
    return keep(device, key, out, [&](VkPipelineLayout* made) { return kept().real.CreatePipelineLayout(device, info, callbacks, made); },
                [device](VkPipelineLayout made) { kept().real.DestroyPipelineLayout(device, made, nullptr); });
}
VKAPI_ATTR void VKAPI_CALL destroy_layout(VkDevice device, VkPipelineLayout layout, const VkAllocationCallbacks* callbacks) {
    if (!kept().has(number_of(layout))) kept().real.DestroyPipelineLayout(device, layout, callbacks);
}

VKAPI_ATTR VkResult VKAPI_CALL create_module(VkDevice device, const VkShaderModuleCreateInfo* info, const VkAllocationCallbacks* callbacks, VkShaderModule* module) {
    const VkResult result = kept().real.CreateShaderModule(device, info, callbacks, module);
    if (result != VK_SUCCESS) return result;
    const std::lock_guard lock(kept().mutex);
    const auto [code, is_new] = kept().codes.emplace(std::string(reinterpret_cast<const char*>(info->pCode), info->codeSize), kept().codes.size());
    kept().code_of_module[number_of(*module)] = code->second;
    return result;
}
VKAPI_ATTR void VKAPI_CALL destroy_module(VkDevice device, VkShaderModule module, const VkAllocationCallbacks* callbacks) {
    {
        const std::lock_guard lock(kept().mutex);
        kept().code_of_module.erase(number_of(module));
    }
    kept().real.DestroyShaderModule(device, module, callbacks);
}

// Nothing where it is made from more than Kernel::compile asks for.
std::optional<std::string> key_of(const VkComputePipelineCreateInfo& info) {
    const VkPipelineShaderStageCreateInfo& stage = info.stage;
    const auto extra = static_cast<const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo*>(stage.pNext);
    if (info.pNext || (extra && (extra->sType != VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO || extra->pNext))) return std::nullopt;
    std::string key = std::string("pipeline") + stage.pName;
    append(key, info.flags);
    append(key, number_of(info.layout));
    append(key, stage.flags);
    append(key, extra ? extra->requiredSubgroupSize : 0);
    {
        const std::lock_guard lock(kept().mutex);
        append(key, kept().code_of_module.at(number_of(stage.module)));
    }
    if (const VkSpecializationInfo* constants = stage.pSpecializationInfo) {
        append(key, constants->pMapEntries, constants->mapEntryCount * sizeof(VkSpecializationMapEntry));
        append(key, constants->pData, constants->dataSize);
    }
    return key;
}

VKAPI_ATTR VkResult VKAPI_CALL create_pipelines(VkDevice device, VkPipelineCache cache, uint32_t count, const VkComputePipelineCreateInfo* infos,
                                                const VkAllocationCallbacks* callbacks, VkPipeline* out) {
    if (count != 1) return kept().real.CreateComputePipelines(device, cache, count, infos, callbacks, out);
    return keep(device, key_of(*infos), out, [&](VkPipeline* made) { return kept().real.CreateComputePipelines(device, cache, 1, infos, callbacks, made); },
                [device](VkPipeline made) { kept().real.DestroyPipeline(device, made, nullptr); });
}
VKAPI_ATTR void VKAPI_CALL destroy_pipeline(VkDevice device, VkPipeline pipeline, const VkAllocationCallbacks* callbacks) {
    if (!kept().has(number_of(pipeline))) kept().real.DestroyPipeline(device, pipeline, callbacks);
}

template <typename F> void put(VkFunctions& vk, F VkFunctions::*function, F ours) {
    if (!(vk.*function) || vk.*function == ours) return;
    if (kept().real.*function != vk.*function) kept().real.*function = vk.*function; // not again: others may be calling it
    vk.*function = ours;
}

} // namespace

VkHook keeping_devices(VkHook then) {
    if (const char* layers = std::getenv("VK_INSTANCE_LAYERS"); layers && *layers) return then;
    return [then](VkFunctions& vk) {
        {
            const std::lock_guard lock(kept().mutex);
            put(vk, &VkFunctions::CreateInstance, create_instance);
            put(vk, &VkFunctions::DestroyInstance, destroy_instance);
            put(vk, &VkFunctions::CreateDevice, create_device);
            put(vk, &VkFunctions::DestroyDevice, destroy_device);
            put(vk, &VkFunctions::CreateDescriptorSetLayout, create_set_layout);
            put(vk, &VkFunctions::DestroyDescriptorSetLayout, destroy_set_layout);
            put(vk, &VkFunctions::CreatePipelineLayout, create_layout);
            put(vk, &VkFunctions::DestroyPipelineLayout, destroy_layout);
            put(vk, &VkFunctions::CreateShaderModule, create_module);
            put(vk, &VkFunctions::DestroyShaderModule, destroy_module);
            put(vk, &VkFunctions::CreateComputePipelines, create_pipelines);
            put(vk, &VkFunctions::DestroyPipeline, destroy_pipeline);
        }
        if (then) then(vk);
    };
}

} // namespace auspex::test
