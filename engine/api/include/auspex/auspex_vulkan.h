/* Bring your own Vulkan device: chain auspex_vulkan_device into auspex_engine_desc.header.next. C99.
 * The engine then makes no instance, device or queue; it submits only inside auspex_engine_create, _step and _destroy. */
#ifndef AUSPEX_AUSPEX_VULKAN_H
#define AUSPEX_AUSPEX_VULKAN_H

#include <auspex/auspex.h>
#include <vulkan/vulkan_core.h>

#ifdef __cplusplus
extern "C" {
#endif

/** All handles stay the host's and must outlive the engine. Vulkan 1.1, no extension and no feature is required.
 *  Vulkan cannot be asked what a device was created with, so optional features are used only when named here. Those that are:
 *  computeFullSubgroups, alone or with subgroupSizeControl (1.3 or VK_EXT_subgroup_size_control); shaderInt64; shaderIntegerDotProduct
 *  (1.3 or VK_KHR_shader_integer_dot_product), which only drafts use; cooperativeMatrix (VK_KHR_cooperative_matrix) with
 *  vulkanMemoryModel, vulkanMemoryModelDeviceScope and shaderFloat16 (1.2). */
typedef struct auspex_vulkan_device {
    auspex_header header;
    PFN_vkGetInstanceProcAddr get_instance_proc_addr;
    VkInstance instance;
    VkPhysicalDevice physical_device;
    VkDevice device;
    VkQueue queue;         /* of a family with VK_QUEUE_COMPUTE_BIT */
    uint32_t queue_family;
    uint32_t api_version;  /* what instance and device were created for, at least 1.1 */
    const VkPhysicalDeviceFeatures2* enabled_features; /* NULL: none. Read during create only */
    const char* const* enabled_extensions;             /* of the device */
    uint32_t enabled_extension_count;
    void (*lock_queue)(void* user_data);   /* both or neither; NULL: nobody else submits to `queue` */
    void (*unlock_queue)(void* user_data);
    void* user_data;
} auspex_vulkan_device;

AUSPEX_API auspex_status auspex_vulkan_device_init(auspex_vulkan_device* device, size_t size);

#ifdef __cplusplus
}
#endif

#endif
