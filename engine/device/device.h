// A Vulkan device to run on: our own, or one a host lends. The struct is the same afterwards.
// Owns instance and device when it made them; remembers for ever when the device was lost.
#pragma once

#include "base/log.h"
#include "base/platform.h"
#include "base/status.h"
#include "device/device_caps.h"

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace auspex {

// Names the call and its VkResult; ok for VK_SUCCESS.
Status vk_status(VkResult result, const char* call);

// Lets tests stand between the engine and the driver: called whenever more of the table was loaded.
using VkHook = std::function<void(VkFunctions&)>;

struct DeviceChoice {
    std::string device; // index, part of a name, or empty: the most capable
    VkHook hook;
    bool want_timestamps = true;
};

// A host's device. Optional features are used only when named as enabled.
struct BorrowedDevice {
    PFN_vkGetInstanceProcAddr get_instance_proc_addr = nullptr;
    VkInstance instance = VK_NULL_HANDLE;
    VkPhysicalDevice physical_device = VK_NULL_HANDLE;
    VkDevice device = VK_NULL_HANDLE;
    VkQueue queue = VK_NULL_HANDLE;
    uint32_t queue_family = 0;
    uint32_t api_version = VK_API_VERSION_1_1;
    bool full_subgroups = false;        // feature enabled, and VK_EXT_subgroup_size_control or Vulkan 1.3
    bool subgroup_size_control = false; // that feature as well
    bool shader_int64 = false;          // feature enabled
    bool integer_dots = false;          // feature enabled, and VK_KHR_shader_integer_dot_product or Vulkan 1.3
    bool cooperative_matrix = false;    // extension and feature enabled, Vulkan memory model and f16 arithmetic as well
    std::function<void()> lock_queue, unlock_queue; // both or neither
    VkHook hook;
};

class Device {
  public:
    static Result<std::unique_ptr<Device>> create(const DeviceChoice& choice, const Logger& log);
    static Result<std::unique_ptr<Device>> adopt(const BorrowedDevice& borrowed, const Logger& log);
    // Caps of every device of this machine, in the order that indices name. A device that cannot be used says why.
    struct Listed {
        DeviceCaps caps;
        std::string unusable_because; // empty: usable
    };
    static Result<std::vector<Listed>> list(const Logger& log);

    // Another VkDevice with the same features and a queue of its own, for another thread; this one must outlive it. unsupported: a
    // host's device has none.
    Result<std::unique_ptr<Device>> twin() const;

    ~Device();
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    VkFunctions vk;
    VkInstance instance = VK_NULL_HANDLE;
    VkPhysicalDevice physical_device = VK_NULL_HANDLE;
    VkDevice handle = VK_NULL_HANDLE;
    VkQueue queue = VK_NULL_HANDLE;
    uint32_t queue_family = 0;
    DeviceCaps caps;
    Logger log;

    // Turns a VkResult into a Status that carries the call's own words; VK_ERROR_DEVICE_LOST becomes sticky.
    Status check(VkResult result, const char* call);
    bool lost() const { return lost_; }
    Status lost_status() const; // names the call that told of it

    // One vkQueueSubmit under the host's lock. fence may be null.
    Status submit(const VkCommandBuffer* buffers, uint32_t count, VkFence fence);
    // Waits for a fence after which things will be freed: gives up only when the device is lost or cannot be asked any
    // more, which then counts as lost.
    Status wait_until_done(VkFence fence);

  private:
    Device() = default;
    Status make_handle(); // and its queue, for physical_device and caps
    std::unique_ptr<SharedLibrary> loader_; // only when we opened it
    VkHook hook_;
    bool owns_instance_ = false, owns_handle_ = false;
    bool lost_ = false;
    std::string lost_by_; // "vkQueueSubmit answered VK_ERROR_DEVICE_LOST"
    std::function<void()> lock_queue_, unlock_queue_;
};

} // namespace auspex

// Runs a Vulkan call that makes an object; after a failure its handle is undefined, so it becomes null again.
#define AUSPEX_VK_MAKE(device, object, call)                                                                           \
    do {                                                                                                               \
        ::auspex::Status auspex_make_status = (device).check((device).vk.call, "vk" #call);                            \
        if (!auspex_make_status.ok()) {                                                                                \
            (object) = VK_NULL_HANDLE;                                                                                 \
            return auspex_make_status;                                                                                 \
        }                                                                                                              \
    } while (0)

// Runs a Vulkan call through the device's table and leaves the function when it failed, with the call's own words.
#define AUSPEX_VK(device, call) AUSPEX_TRY((device).check((device).vk.call, "vk" #call))
