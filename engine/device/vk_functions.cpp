// Loads the function table and names VkResult values.
#include "device/vk_functions.h"

namespace auspex {

const char* VkFunctions::load_global(PFN_vkGetInstanceProcAddr get) {
    GetInstanceProcAddr = get;
#define AUSPEX_VK_LOAD(name)                                                                                           \
    name = reinterpret_cast<PFN_vk##name>(get(VK_NULL_HANDLE, "vk" #name));                                            \
    if (!name) return "vk" #name;
    AUSPEX_VK_GLOBAL(AUSPEX_VK_LOAD)
#undef AUSPEX_VK_LOAD
    return nullptr;
}

const char* VkFunctions::load_instance(VkInstance instance) {
#define AUSPEX_VK_LOAD(name)                                                                                           \
    name = reinterpret_cast<PFN_vk##name>(GetInstanceProcAddr(instance, "vk" #name));                                  \
    if (!name) return "vk" #name;
    AUSPEX_VK_INSTANCE(AUSPEX_VK_LOAD)
#undef AUSPEX_VK_LOAD
#define AUSPEX_VK_LOAD(name) name = reinterpret_cast<PFN_vk##name>(GetInstanceProcAddr(instance, "vk" #name));
    AUSPEX_VK_INSTANCE_OPTIONAL(AUSPEX_VK_LOAD)
#undef AUSPEX_VK_LOAD
    return nullptr;
}

const char* VkFunctions::load_device(VkDevice device) {
#define AUSPEX_VK_LOAD(name)                                                                                           \
    name = reinterpret_cast<PFN_vk##name>(GetDeviceProcAddr(device, "vk" #name));                                      \
    if (!name) return "vk" #name;
    AUSPEX_VK_DEVICE(AUSPEX_VK_LOAD)
#undef AUSPEX_VK_LOAD
#define AUSPEX_VK_LOAD(name) name = reinterpret_cast<PFN_vk##name>(GetDeviceProcAddr(device, "vk" #name));
    AUSPEX_VK_OPTIONAL(AUSPEX_VK_LOAD)
#undef AUSPEX_VK_LOAD
    return nullptr;
}

const char* vk_result_name(VkResult result) {
    switch (result) {
#define AUSPEX_VK_CASE(name)                                                                                           \
    case name: return #name;
        AUSPEX_VK_CASE(VK_SUCCESS)
        AUSPEX_VK_CASE(VK_NOT_READY)
        AUSPEX_VK_CASE(VK_TIMEOUT)
        AUSPEX_VK_CASE(VK_INCOMPLETE)
        AUSPEX_VK_CASE(VK_ERROR_OUT_OF_HOST_MEMORY)
        AUSPEX_VK_CASE(VK_ERROR_OUT_OF_DEVICE_MEMORY)
        AUSPEX_VK_CASE(VK_ERROR_INITIALIZATION_FAILED)
        AUSPEX_VK_CASE(VK_ERROR_DEVICE_LOST)
        AUSPEX_VK_CASE(VK_ERROR_MEMORY_MAP_FAILED)
        AUSPEX_VK_CASE(VK_ERROR_LAYER_NOT_PRESENT)
        AUSPEX_VK_CASE(VK_ERROR_EXTENSION_NOT_PRESENT)
        AUSPEX_VK_CASE(VK_ERROR_FEATURE_NOT_PRESENT)
        AUSPEX_VK_CASE(VK_ERROR_INCOMPATIBLE_DRIVER)
        AUSPEX_VK_CASE(VK_ERROR_TOO_MANY_OBJECTS)
        AUSPEX_VK_CASE(VK_ERROR_FRAGMENTED_POOL)
        AUSPEX_VK_CASE(VK_ERROR_OUT_OF_POOL_MEMORY)
        AUSPEX_VK_CASE(VK_ERROR_UNKNOWN)
#undef AUSPEX_VK_CASE
    default: return "an unnamed VkResult";
    }
}

} // namespace auspex
