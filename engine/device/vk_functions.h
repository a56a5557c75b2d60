// The Vulkan entry points the engine calls, as one table: loaded from a vkGetInstanceProcAddr that is given, so that
// nothing is linked, nothing is global, and tests can put their own functions in between.
#pragma once

#include "device/vk_cooperative_matrix.h"

namespace auspex {

// clang-format off
#define AUSPEX_VK_GLOBAL(X) X(CreateInstance) X(EnumerateInstanceExtensionProperties)
#define AUSPEX_VK_INSTANCE(X)                                                                                          \
    X(DestroyInstance) X(EnumeratePhysicalDevices) X(GetPhysicalDeviceProperties) X(GetPhysicalDeviceProperties2)      \
    X(GetPhysicalDeviceFeatures2) X(GetPhysicalDeviceMemoryProperties2) X(GetPhysicalDeviceQueueFamilyProperties)       \
    X(EnumerateDeviceExtensionProperties) X(CreateDevice) X(GetDeviceProcAddr)
#define AUSPEX_VK_INSTANCE_OPTIONAL(X) X(GetPhysicalDeviceCooperativeMatrixPropertiesKHR)
#define AUSPEX_VK_DEVICE(X)                                                                                            \
    X(DestroyDevice) X(GetDeviceQueue) X(QueueSubmit)                                                                 \
    X(AllocateMemory) X(FreeMemory) X(MapMemory) X(CreateBuffer) X(DestroyBuffer) X(GetBufferMemoryRequirements)       \
    X(BindBufferMemory) X(CreateShaderModule) X(DestroyShaderModule) X(CreateDescriptorSetLayout)                      \
    X(DestroyDescriptorSetLayout) X(CreatePipelineLayout) X(DestroyPipelineLayout) X(CreatePipelineCache)              \
    X(DestroyPipelineCache) X(GetPipelineCacheData) X(CreateComputePipelines) X(DestroyPipeline)                       \
    X(CreateBufferView) X(DestroyBufferView)                                                                           \
    X(CreateDescriptorPool) X(DestroyDescriptorPool) X(AllocateDescriptorSets) X(UpdateDescriptorSets)                 \
    X(CreateCommandPool) X(DestroyCommandPool) X(AllocateCommandBuffers) X(FreeCommandBuffers)                         \
    X(BeginCommandBuffer) X(EndCommandBuffer) X(CmdPipelineBarrier) X(CmdBindPipeline) X(CmdBindDescriptorSets)        \
    X(CmdPushConstants) X(CmdDispatch) X(CmdDispatchIndirect) X(CmdCopyBuffer) X(CmdFillBuffer)                        \
    X(CreateQueryPool) X(DestroyQueryPool) X(CmdResetQueryPool) X(CmdWriteTimestamp) X(GetQueryPoolResults)            \
    X(CmdCopyQueryPoolResults)                                                                                         \
    X(CreateFence) X(DestroyFence) X(ResetFences) X(GetFenceStatus) X(WaitForFences)
#define AUSPEX_VK_OPTIONAL(X) X(CmdBeginDebugUtilsLabelEXT) X(CmdEndDebugUtilsLabelEXT)
// clang-format on

struct VkFunctions {
    PFN_vkGetInstanceProcAddr GetInstanceProcAddr = nullptr;
#define AUSPEX_VK_MEMBER(name) PFN_vk##name name = nullptr;
    AUSPEX_VK_GLOBAL(AUSPEX_VK_MEMBER)
    AUSPEX_VK_INSTANCE(AUSPEX_VK_MEMBER)
    AUSPEX_VK_INSTANCE_OPTIONAL(AUSPEX_VK_MEMBER)
    AUSPEX_VK_DEVICE(AUSPEX_VK_MEMBER)
    AUSPEX_VK_OPTIONAL(AUSPEX_VK_MEMBER)
#undef AUSPEX_VK_MEMBER

    // Each returns the name of the first entry point that is missing, or null. Optional ones may stay null.
    const char* load_global(PFN_vkGetInstanceProcAddr get);
    const char* load_instance(VkInstance instance);
    const char* load_device(VkDevice device);
};

// "VK_ERROR_DEVICE_LOST" and the like, for messages.
const char* vk_result_name(VkResult result);

} // namespace auspex
