// One function per entry point of the table, made by a template.
#include "vk_injector.h"

#include <cstring>
#include <tuple>
#include <type_traits>

namespace auspex::test {
namespace {

constexpr bool starts_with(std::string_view text, std::string_view with) {
    return text.substr(0, with.size()) == with;
}

// Which calls may answer VK_ERROR_DEVICE_LOST (Vulkan specification, return codes of each command).
bool may_lose_device(std::string_view name) {
    return name == "CreateDevice" || name == "QueueSubmit" || name == "WaitForFences" || name == "GetFenceStatus" || name == "GetQueryPoolResults";
}

template <typename T> uint64_t as_number(T handle) {
    if constexpr (std::is_pointer_v<T>) return reinterpret_cast<uint64_t>(handle);
    else return static_cast<uint64_t>(handle);
}

constexpr const char* kNames[] = {
#define AUSPEX_NAME(name) #name,
    AUSPEX_VK_GLOBAL(AUSPEX_NAME) AUSPEX_VK_INSTANCE(AUSPEX_NAME) AUSPEX_VK_INSTANCE_OPTIONAL(AUSPEX_NAME) AUSPEX_VK_DEVICE(AUSPEX_NAME)
#undef AUSPEX_NAME
};
enum Index : int {
#define AUSPEX_INDEX(name) k##name,
    AUSPEX_VK_GLOBAL(AUSPEX_INDEX) AUSPEX_VK_INSTANCE(AUSPEX_INDEX) AUSPEX_VK_INSTANCE_OPTIONAL(AUSPEX_INDEX) AUSPEX_VK_DEVICE(AUSPEX_INDEX)
#undef AUSPEX_INDEX
};

// One function per entry point; `real` is what stood in the table before.
template <int kIndex, typename Function> struct Wrapper;
template <int kIndex, typename R, typename... Args> struct Wrapper<kIndex, R(VKAPI_PTR*)(Args...)> {
    static inline R(VKAPI_PTR* real)(Args...) = nullptr;

    static VKAPI_ATTR R VKAPI_CALL call(Args... args) {
        constexpr const char* name = kNames[kIndex];
        VkInjector& injector = VkInjector::instance();
        auto all = std::tuple<Args...>(args...);
        [[maybe_unused]] constexpr size_t n = sizeof...(Args);
        if constexpr (std::is_same_v<R, VkResult>) {
            const VkResult injected = injector.before(name);
            // Calls that make one object give its handle through the last argument. After a failure it is undefined,
            // save for pipelines, command buffers and descriptor sets, which are null then.
            constexpr bool makes = starts_with(name, "Create") || std::string_view(name) == "AllocateMemory";
            if constexpr (makes) {
                auto* out = std::get<n - 1>(all);
                using Handle = std::remove_pointer_t<decltype(out)>;
                if (injected != VK_SUCCESS) {
                    *out = std::string_view(name) == "CreateComputePipelines" ? Handle{} : reinterpret_cast<Handle>(uintptr_t{0xdeadbeef});
                    return injected;
                }
                const VkResult result = real(args...);
                if (result == VK_SUCCESS) injector.created(name, as_number(*out));
                return result;
            } else {
                return injected != VK_SUCCESS ? injected : real(args...);
            }
        } else {
            if constexpr (starts_with(name, "Destroy") || std::string_view(name) == "FreeMemory")
                injector.destroyed(name, as_number(std::get<n - 2>(all)));
            return real(args...);
        }
    }
    static void put(R(VKAPI_PTR*& entry)(Args...)) {
        if (entry == nullptr || entry == &call) return;
        real = entry;
        entry = &call;
    }
};

// "CreateComputePipelines" and "DestroyPipeline" are of one kind.
std::string kind_of(std::string_view name) {
    for (const char* prefix : {"Create", "Destroy", "Allocate", "Free"})
        if (starts_with(name, prefix)) name.remove_prefix(std::strlen(prefix));
    return name == "ComputePipelines" ? "Pipeline" : std::string(name);
}

} // namespace

VkInjector& VkInjector::instance() {
    static VkInjector injector;
    return injector;
}

VkHook VkInjector::hook() {
    return [](VkFunctions& vk) {
        const bool first_with_device = vk.CreateBuffer != nullptr && vk.CreateBuffer != &Wrapper<kCreateBuffer, PFN_vkCreateBuffer>::call;
        const PFN_vkGetDeviceProcAddr get = vk.GetDeviceProcAddr;
#define AUSPEX_WRAP(name) Wrapper<k##name, PFN_vk##name>::put(vk.name);
        AUSPEX_VK_GLOBAL(AUSPEX_WRAP) AUSPEX_VK_INSTANCE(AUSPEX_WRAP) AUSPEX_VK_INSTANCE_OPTIONAL(AUSPEX_WRAP) AUSPEX_VK_DEVICE(AUSPEX_WRAP)
#undef AUSPEX_WRAP
        VkInjector& injector = instance();
        if (first_with_device)
            for (const auto& [object, unused] : injector.alive_)
                if (object.first == "Device") {
                    const auto device = reinterpret_cast<VkDevice>(object.second);
                    injector.device_made(device, reinterpret_cast<PFN_vkDeviceWaitIdle>(get(device, "vkDeviceWaitIdle")));
                }
    };
}

void VkInjector::reset(const Injection& injection) {
    injection_ = injection;
    fired_ = false;
    fired_call_.clear();
    failed_calls_.clear();
    calls_.clear();
    alive_.clear();
    misuse_.clear();
    device_ = VK_NULL_HANDLE;
}

std::string VkInjector::alive() const {
    std::map<std::string, int> counts;
    for (const auto& [object, unused] : alive_) counts[object.first] += 1;
    std::string text;
    for (const auto& [kind, count] : counts) text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + kind;
    return text;
}

VkResult VkInjector::before(const char* name) {
    const std::lock_guard lock(mutex_);
    const int index = static_cast<int>(calls_.size());
    calls_.push_back(name);
    const bool due = injection_.at >= 0 && (index == injection_.at || (injection_.persistent && fired_ && index > injection_.at));
    if (!due || (injection_.code == VK_ERROR_DEVICE_LOST && !may_lose_device(name))) return VK_SUCCESS;
    // A lost device does nothing more; and where nobody can ever wait again, nothing may be left to wait for.
    if (device_ && (injection_.code == VK_ERROR_DEVICE_LOST || injection_.persistent)) wait_idle_(device_);
    if (!fired_) fired_call_ = std::string("vk") + name;
    failed_calls_.insert(std::string("vk") + name);
    fired_ = true;
    return injection_.code;
}

void VkInjector::created(const char* name, uint64_t handle) {
    const std::lock_guard lock(mutex_);
    alive_[{kind_of(name), handle}] += 1;
}

void VkInjector::destroyed(const char* name, uint64_t handle) {
    const std::lock_guard lock(mutex_);
    if (handle == 0) return;
    auto found = alive_.find({kind_of(name), handle});
    if (found == alive_.end()) {
        misuse_.push_back(std::string("vk") + name + " of something that is not alive");
        return;
    }
    if (kind_of(name) == "Device") device_ = VK_NULL_HANDLE;
    if (--found->second == 0) alive_.erase(found);
}

void VkInjector::device_made(VkDevice device, PFN_vkDeviceWaitIdle wait_idle) {
    device_ = device;
    wait_idle_ = wait_idle;
}

} // namespace auspex::test
