/* A host with volk: lends its device to the engine. volk's entry points are process-wide variables; traps in them show
 * that the engine neither overwrites them (a second volk would) nor calls through them. */
#define VOLK_IMPLEMENTATION
#include <volk.h>

#include "../story.h"
#include <auspex/auspex_vulkan.h>

#include <stdlib.h>

static int traps_sprung;
static VKAPI_ATTR void VKAPI_CALL trap_dispatch(VkCommandBuffer commands, uint32_t x, uint32_t y, uint32_t z) {
    (void)commands, (void)x, (void)y, (void)z;
    ++traps_sprung;
}
static VKAPI_ATTR VkResult VKAPI_CALL trap_submit(VkQueue queue, uint32_t n, const VkSubmitInfo* submits, VkFence fence) {
    (void)queue, (void)n, (void)submits, (void)fence;
    ++traps_sprung;
    return VK_ERROR_UNKNOWN;
}
static VKAPI_ATTR VkResult VKAPI_CALL trap_buffer(VkDevice device, const VkBufferCreateInfo* info,
                                                  const VkAllocationCallbacks* allocator, VkBuffer* buffer) {
    (void)device, (void)info, (void)allocator, (void)buffer;
    ++traps_sprung;
    return VK_ERROR_UNKNOWN;
}

/* The host's own submissions and the engine's never meet. */
static int n_locks, n_unlocks;
static void lock_queue(void* user_data) {
    (void)user_data;
    if (n_locks != n_unlocks) ++traps_sprung;
    ++n_locks;
}
static void unlock_queue(void* user_data) {
    (void)user_data;
    ++n_unlocks;
    if (n_locks != n_unlocks) ++traps_sprung;
}

static int fail(const char* what) {
    fprintf(stderr, "volk host: %s\n", what);
    return 1;
}

/* A compute queue on the first device, as a game would have made it; returns the family, or -1. */
static int make_device(VkInstance instance, VkPhysicalDevice* physical_device, VkDevice* device) {
    uint32_t n_devices = 1, n_families = 16, family;
    VkQueueFamilyProperties families[16];
    const float priority = 1.0f;
    VkDeviceQueueCreateInfo queue = {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
    VkDeviceCreateInfo info = {VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
    if (vkEnumeratePhysicalDevices(instance, &n_devices, physical_device) < 0 || n_devices == 0) return -1;
    vkGetPhysicalDeviceQueueFamilyProperties(*physical_device, &n_families, families);
    for (family = 0; family < n_families; ++family)
        if (families[family].queueFlags & VK_QUEUE_COMPUTE_BIT) break;
    if (family == n_families) return -1;
    queue.queueFamilyIndex = family;
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &queue;
    return vkCreateDevice(*physical_device, &info, NULL, device) == VK_SUCCESS ? (int)family : -1;
}

int main(int argc, char** argv) {
    VkApplicationInfo application = {VK_STRUCTURE_TYPE_APPLICATION_INFO};
    VkInstanceCreateInfo info = {VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    VkInstance instance;
    VkPhysicalDevice physical_device;
    VkDevice device;
    auspex_vulkan_device lent;
    auspex_engine_desc desc;
    PFN_vkCmdDispatch own_dispatch;
    PFN_vkQueueSubmit own_submit;
    PFN_vkCreateBuffer own_buffer;
    int family, result;

    if (argc != 3) return 2;
    application.apiVersion = VK_API_VERSION_1_1;
    info.pApplicationInfo = &application;
    if (volkInitialize() != VK_SUCCESS) return fail("no Vulkan loader");
    if (vkCreateInstance(&info, NULL, &instance) != VK_SUCCESS) return fail("no instance");
    volkLoadInstance(instance);
    family = make_device(instance, &physical_device, &device);
    if (family < 0) return fail("no device with a compute queue");
    volkLoadDevice(device);

    if (auspex_vulkan_device_init(&lent, sizeof lent) < 0) return fail("auspex_vulkan_device_init");
    if (auspex_engine_desc_init(&desc, sizeof desc) < 0) return fail("auspex_engine_desc_init");
    lent.get_instance_proc_addr = vkGetInstanceProcAddr;
    lent.instance = instance;
    lent.physical_device = physical_device;
    lent.device = device;
    lent.queue_family = (uint32_t)family;
    lent.api_version = VK_API_VERSION_1_1;
    vkGetDeviceQueue(device, (uint32_t)family, 0, &lent.queue);
    lent.lock_queue = lock_queue;
    lent.unlock_queue = unlock_queue;
    desc.header.next = &lent;
    desc.target_path = argv[1];
    desc.draft_path = argv[2];

    own_dispatch = vkCmdDispatch;
    own_submit = vkQueueSubmit;
    own_buffer = vkCreateBuffer;
    vkCmdDispatch = trap_dispatch;
    vkQueueSubmit = trap_submit;
    vkCreateBuffer = trap_buffer;
    result = tell_story(&desc, 12);
    if (vkCmdDispatch != trap_dispatch || vkQueueSubmit != trap_submit || vkCreateBuffer != trap_buffer)
        return fail("the engine replaced the host's entry points");
    if (traps_sprung != 0) return fail("the engine called through the host's entry points, or did not lock in pairs");
    if (n_locks == 0 || n_locks != n_unlocks) return fail("the engine submitted without the host's lock");
    vkCmdDispatch = own_dispatch;
    vkQueueSubmit = own_submit;
    vkCreateBuffer = own_buffer;

    if (vkDeviceWaitIdle(device) != VK_SUCCESS) result = fail("the host's device is not usable any more");
    vkDestroyDevice(device, NULL);
    vkDestroyInstance(instance, NULL);
    return result;
}
