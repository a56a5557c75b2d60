// Stands between the engine and the driver through DeviceChoice.hook: counts the calls that may fail, makes call number i
// fail, and keeps a list of the objects alive. One per process; an engine's own threads may call through it.
#pragma once

#include "device/device.h"

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace auspex::test {

struct Injection {
    int at = -1;               // index of the call that fails, counted over calls with a VkResult; -1: none
    VkResult code = VK_SUCCESS; // what it answers
    bool persistent = false;   // every later call that may answer so does
};

class VkInjector {
  public:
    static VkInjector& instance();
    static VkHook hook(); // for DeviceChoice and BorrowedDevice

    void reset(const Injection& injection);
    bool fired() const { return fired_; }
    const std::string& fired_call() const { return fired_call_; }          // "vkCreateBuffer"; empty when nothing fired
    const std::set<std::string>& failed_calls() const { return failed_calls_; } // that one, and those that failed after it
    const std::vector<const char*>& calls() const { return calls_; }       // names without "vk", since reset
    std::string alive() const;                                            // "2 Buffer, 1 Fence"; empty when all are gone
    const std::vector<std::string>& misuse() const { return misuse_; }     // destroyed what is not alive

    // For the wrappers.
    VkResult before(const char* name);
    void created(const char* name, uint64_t handle);
    void destroyed(const char* name, uint64_t handle);
    void device_made(VkDevice device, PFN_vkDeviceWaitIdle wait_idle);

  private:
    std::mutex mutex_; // of what the wrappers call
    Injection injection_;
    bool fired_ = false;
    std::string fired_call_;
    std::set<std::string> failed_calls_;
    std::vector<const char*> calls_;
    std::map<std::pair<std::string, uint64_t>, int> alive_;
    std::vector<std::string> misuse_;
    VkDevice device_ = VK_NULL_HANDLE;
    PFN_vkDeviceWaitIdle wait_idle_ = nullptr;
};

} // namespace auspex::test
