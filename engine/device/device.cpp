// Makes or adopts a device; ends it; keeps the one fact that outlives every call: whether it was lost.
#include "device/device.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

namespace auspex {

namespace {

const char* const kLoaderMissing = "no Vulkan loader was found on this machine; install a Vulkan driver and its loader "
                                   "(Debian: mesa-vulkan-drivers runs on any CPU)";

Status missing_entry_point(const char* name) {
    return {Code::no_device, std::string("the Vulkan driver lacks ") + name + "; Vulkan 1.1 is needed"};
}

// What people can do about it. Which drivers were asked is told by who may read the environment.
Status no_device_found(const std::string& why) {
    return {Code::no_device, "no Vulkan device was found" + why + "; install the GPU's driver, or one that runs on any CPU (Debian: "
                             "mesa-vulkan-drivers brings lavapipe); a GPU that has one may be closed to this user (Linux: join the group render)"};
}

// Drivers that find no hardware answer in many ways. Want of memory and a lost device are not among them.
bool means_no_device(const Status& status) {
    return status.code() == Code::internal || status.code() == Code::unsupported;
}

Result<VkInstance> create_instance(VkFunctions& vk) {
    uint32_t n = 0;
    AUSPEX_TRY(vk_status(vk.EnumerateInstanceExtensionProperties(nullptr, &n, nullptr), "vkEnumerateInstanceExtensionProperties"));
    std::vector<VkExtensionProperties> available(n);
    AUSPEX_TRY(vk_status(vk.EnumerateInstanceExtensionProperties(nullptr, &n, available.data()), "vkEnumerateInstanceExtensionProperties"));
    available.resize(n);
    auto has = [&](const char* name) {
        return std::any_of(available.begin(), available.end(),
                           [&](const VkExtensionProperties& e) { return std::strcmp(e.extensionName, name) == 0; });
    };
    std::vector<const char*> extensions;
    VkInstanceCreateFlags flags = 0;
    if (has("VK_KHR_portability_enumeration")) { // MoltenVK is listed only when asked for
        extensions.push_back("VK_KHR_portability_enumeration");
        flags |= 0x00000001; // VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR, newer than some headers
    }
    if (has("VK_EXT_debug_utils")) extensions.push_back("VK_EXT_debug_utils");
    VkApplicationInfo app = {VK_STRUCTURE_TYPE_APPLICATION_INFO, nullptr, "auspex", 1, "auspex", 1, VK_API_VERSION_1_3};
    VkInstanceCreateInfo info = {VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, nullptr, flags, &app, 0, nullptr,
                                 static_cast<uint32_t>(extensions.size()), extensions.data()};
    VkInstance instance = VK_NULL_HANDLE;
    VkResult result = vk.CreateInstance(&info, nullptr, &instance);
    if (result == VK_ERROR_INCOMPATIBLE_DRIVER && extensions.empty()) { // a 1.0 loader
        return Status(Code::no_device, "no Vulkan device can be used: the loader knows no Vulkan 1.1; install a newer one");
    }
    Status status = vk_status(result, "vkCreateInstance");
    const std::string again = result == VK_ERROR_INCOMPATIBLE_DRIVER ? ", as NVIDIA's does where libX11 or libXext is missing, and in a process that has opened and closed some 30 instances and keeps none open" : "";
    if (means_no_device(status)) return no_device_found(" (" + status.message() + again + ")");
    if (!status.ok()) return status;
    return instance;
}

std::optional<uint32_t> compute_family(const VkFunctions& vk, VkPhysicalDevice physical_device) {
    uint32_t n = 0;
    vk.GetPhysicalDeviceQueueFamilyProperties(physical_device, &n, nullptr);
    std::vector<VkQueueFamilyProperties> families(n);
    vk.GetPhysicalDeviceQueueFamilyProperties(physical_device, &n, families.data());
    for (uint32_t i = 0; i < n; ++i)
        if (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) return i;
    return std::nullopt;
}

std::string why_unusable(const VkFunctions& vk, VkPhysicalDevice physical_device) {
    VkPhysicalDeviceProperties properties = {};
    vk.GetPhysicalDeviceProperties(physical_device, &properties);
    if (properties.apiVersion < VK_API_VERSION_1_1) return "supports Vulkan below 1.1";
    if (!compute_family(vk, physical_device)) return "has no compute queue";
    if (properties.limits.maxPerStageDescriptorStorageBuffers < kMostBindings)
        return "binds " + std::to_string(properties.limits.maxPerStageDescriptorStorageBuffers) + " storage buffers, " +
               std::to_string(kMostBindings) + " are needed";
    return "";
}

int type_rank(VkPhysicalDeviceType type) {
    switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return 4;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return 3;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return 2;
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return 1;
    default: return 0;
    }
}

std::string lower(std::string text) {
    for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    return text;
}

Result<std::vector<VkPhysicalDevice>> enumerate_physical(const VkFunctions& vk, VkInstance instance) {
    uint32_t n = 0;
    VkResult result = vk.EnumeratePhysicalDevices(instance, &n, nullptr);
    std::vector<VkPhysicalDevice> devices(n);
    if (result == VK_SUCCESS && n > 0) result = vk.EnumeratePhysicalDevices(instance, &n, devices.data());
    if (result != VK_INCOMPLETE) {
        Status status = vk_status(result, "vkEnumeratePhysicalDevices");
        if (means_no_device(status)) return no_device_found(" (" + status.message() + ")");
        AUSPEX_TRY(std::move(status));
    }
    devices.resize(n);
    if (devices.empty()) return no_device_found("");
    return devices;
}

// Index, part of a name, or empty (the most capable).
Result<VkPhysicalDevice> choose(const VkFunctions& vk, const std::vector<VkPhysicalDevice>& devices,
                                const std::string& wanted) {
    std::string names;
    std::optional<size_t> best;
    int best_rank = -1;
    size_t index = devices.size();
    auto [end, error] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), index);
    bool by_index = !wanted.empty() && error == std::errc() && end == wanted.data() + wanted.size();
    for (size_t i = 0; i < devices.size(); ++i) {
        VkPhysicalDeviceProperties properties = {};
        vk.GetPhysicalDeviceProperties(devices[i], &properties);
        const std::string reason = why_unusable(vk, devices[i]);
        names += (i ? ", " : "") + std::to_string(i) + " \"" + properties.deviceName + "\"" + (reason.empty() ? "" : " (" + reason + ")");
        bool match = wanted.empty() || (by_index ? i == index
                                                 : lower(properties.deviceName).find(lower(wanted)) != std::string::npos);
        if (!match) continue;
        int rank = reason.empty() ? type_rank(properties.deviceType) : -1;
        if (rank > best_rank || (!wanted.empty() && !best)) {
            best = i;
            best_rank = rank;
        }
    }
    if (!best && !wanted.empty())
        return Status(Code::no_device, "device " + in_quotes(wanted) + " was not found; expected an index or part of a name of: " + names);
    if (!best || !why_unusable(vk, devices[*best]).empty()) return Status(Code::no_device, "no usable Vulkan device among: " + names);
    return devices[*best];
}

} // namespace

Result<std::unique_ptr<Device>> Device::create(const DeviceChoice& choice, const Logger& log) {
    std::unique_ptr<Device> device(new Device());
    device->log = log;
    device->hook_ = choice.hook;
    device->owns_instance_ = true;
    auto loader = SharedLibrary::open_vulkan_loader();
    if (!loader.ok()) return Status(Code::no_device, kLoaderMissing);
    device->loader_ = std::move(loader).value();
    auto get = reinterpret_cast<PFN_vkGetInstanceProcAddr>(device->loader_->symbol("vkGetInstanceProcAddr"));
    if (!get) return Status(Code::no_device, kLoaderMissing);
    VkFunctions& vk = device->vk;
    if (const char* name = vk.load_global(get)) return missing_entry_point(name);
    if (choice.hook) choice.hook(vk);
    AUSPEX_TRY_ASSIGN(instance, create_instance(vk));
    device->instance = instance;
    if (const char* name = vk.load_instance(instance)) return missing_entry_point(name);
    if (choice.hook) choice.hook(vk);
    AUSPEX_TRY_ASSIGN(devices, enumerate_physical(vk, instance));
    AUSPEX_TRY_ASSIGN(physical_device, choose(vk, devices, choice.device));
    device->physical_device = physical_device;
    device->queue_family = *compute_family(vk, physical_device);
    AUSPEX_TRY_SET(device->caps, probe_caps(vk, physical_device, device->queue_family));
    if (const std::string reason = why_refused(device->caps); !reason.empty())
        return Status(Code::no_device, "the device \"" + device->caps.name + "\" " + reason);
    if (!choice.want_timestamps) device->caps.timestamp_period_ns = 0;
    AUSPEX_TRY(device->make_handle());
    return device;
}

Result<std::unique_ptr<Device>> Device::twin() const {
    if (!owns_instance_) return Status(Code::unsupported, "a host's device has no twin");
    std::unique_ptr<Device> device(new Device());
    device->hook_ = hook_;
    device->vk = vk;
    device->instance = instance;
    device->physical_device = physical_device;
    device->queue_family = queue_family;
    device->caps = caps;
    AUSPEX_TRY(device->make_handle());
    return device;
}

Status Device::make_handle() {
    std::vector<const char*> extensions;
    AUSPEX_TRY_ASSIGN(available, device_extensions(vk, physical_device));
    for (const auto& e : available) { // a device that offers it demands it
        if (std::strcmp(e.extensionName, "VK_KHR_portability_subset") == 0) extensions.push_back("VK_KHR_portability_subset");
        if (caps.full_subgroups && caps.api_version < VK_API_VERSION_1_3 &&
            std::strcmp(e.extensionName, "VK_EXT_subgroup_size_control") == 0)
            extensions.push_back("VK_EXT_subgroup_size_control");
    }
    if (caps.integer_dots && caps.api_version < VK_API_VERSION_1_3) extensions.push_back(VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
    if (caps.matrix) extensions.push_back(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
    VkPhysicalDeviceSubgroupSizeControlFeatures size_features = {};
    size_features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES;
    size_features.subgroupSizeControl = caps.subgroup_size_control ? VK_TRUE : VK_FALSE;
    size_features.computeFullSubgroups = VK_TRUE;
    VkPhysicalDeviceFeatures2 features = {};
    features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    features.features.shaderInt64 = caps.shader_int64 ? VK_TRUE : VK_FALSE;
    features.pNext = caps.full_subgroups ? &size_features : nullptr;
    VkPhysicalDeviceShaderIntegerDotProductFeatures dots = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES, features.pNext, VK_TRUE};
    if (caps.integer_dots) features.pNext = &dots;
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrix = {};
    matrix.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR;
    matrix.cooperativeMatrix = VK_TRUE;
    VkPhysicalDeviceVulkanMemoryModelFeatures model = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES, &matrix, VK_TRUE, VK_TRUE, 0};
    VkPhysicalDeviceShaderFloat16Int8Features half = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES, &model, VK_TRUE, 0};
    if (caps.matrix) {
        matrix.pNext = features.pNext;
        features.pNext = &half;
    }
    float priority = 0.5f;
    VkDeviceQueueCreateInfo queue_info = {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, nullptr, 0, queue_family, 1, &priority};
    VkDeviceCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    info.pNext = &features;
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &queue_info;
    info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
    info.ppEnabledExtensionNames = extensions.data();
    AUSPEX_VK_MAKE(*this, handle, CreateDevice(physical_device, &info, nullptr, &handle));
    owns_handle_ = true;
    if (const char* name = vk.load_device(handle)) return missing_entry_point(name);
    if (hook_) hook_(vk);
    vk.GetDeviceQueue(handle, queue_family, 0, &queue);
    return ok_status();
}

Result<std::unique_ptr<Device>> Device::adopt(const BorrowedDevice& borrowed, const Logger& log) {
    if (!borrowed.get_instance_proc_addr || !borrowed.instance || !borrowed.physical_device || !borrowed.device || !borrowed.queue)
        return Status(Code::invalid_argument, "auspex_vulkan_device: every handle and get_instance_proc_addr must be set");
    if (!borrowed.lock_queue != !borrowed.unlock_queue)
        return Status(Code::invalid_argument, "auspex_vulkan_device: lock_queue and unlock_queue must be set both or neither");
    if (borrowed.api_version < VK_API_VERSION_1_1)
        return Status(Code::no_device, "auspex_vulkan_device: api_version is below 1.1");
    std::unique_ptr<Device> device(new Device());
    device->log = log;
    VkFunctions& vk = device->vk;
    if (const char* name = vk.load_global(borrowed.get_instance_proc_addr)) return missing_entry_point(name);
    if (const char* name = vk.load_instance(borrowed.instance)) return missing_entry_point(name);
    if (const char* name = vk.load_device(borrowed.device)) return missing_entry_point(name);
    if (borrowed.hook) borrowed.hook(vk);
    device->instance = borrowed.instance;
    device->physical_device = borrowed.physical_device;
    device->handle = borrowed.device;
    device->queue = borrowed.queue;
    device->queue_family = borrowed.queue_family;
    device->lock_queue_ = borrowed.lock_queue;
    device->unlock_queue_ = borrowed.unlock_queue;
    uint32_t n_families = 0;
    vk.GetPhysicalDeviceQueueFamilyProperties(borrowed.physical_device, &n_families, nullptr);
    std::vector<VkQueueFamilyProperties> families(n_families);
    vk.GetPhysicalDeviceQueueFamilyProperties(borrowed.physical_device, &n_families, families.data());
    if (borrowed.queue_family >= n_families || !(families[borrowed.queue_family].queueFlags & VK_QUEUE_COMPUTE_BIT))
        return Status(Code::no_device, "auspex_vulkan_device: queue_family " + std::to_string(borrowed.queue_family) +
                                             " has no VK_QUEUE_COMPUTE_BIT");
    if (std::string reason = why_unusable(vk, borrowed.physical_device); !reason.empty())
        return Status(Code::no_device, "auspex_vulkan_device: the physical device " + reason);
    AUSPEX_TRY_SET(device->caps, probe_caps(vk, borrowed.physical_device, borrowed.queue_family));
    if (const std::string reason = why_refused(device->caps); !reason.empty())
        return Status(Code::no_device, "auspex_vulkan_device: the physical device " + reason);
    device->caps.full_subgroups = device->caps.full_subgroups && borrowed.full_subgroups;
    device->caps.subgroup_size_control = device->caps.subgroup_size_control && device->caps.full_subgroups && borrowed.subgroup_size_control;
    device->caps.shader_int64 = device->caps.shader_int64 && borrowed.shader_int64;
    device->caps.integer_dots = device->caps.integer_dots && borrowed.integer_dots;
    device->caps.quick_integer_dots = device->caps.quick_integer_dots && device->caps.integer_dots;
    if (!borrowed.cooperative_matrix) device->caps.matrix = {};
    return device;
}

Result<std::vector<Device::Listed>> Device::list(const Logger&) {
    auto loader = SharedLibrary::open_vulkan_loader();
    if (!loader.ok()) return Status(Code::no_device, kLoaderMissing);
    auto get = reinterpret_cast<PFN_vkGetInstanceProcAddr>(loader.value()->symbol("vkGetInstanceProcAddr"));
    if (!get) return Status(Code::no_device, kLoaderMissing);
    VkFunctions vk;
    if (const char* name = vk.load_global(get)) return missing_entry_point(name);
    AUSPEX_TRY_ASSIGN(instance, create_instance(vk));
    if (const char* name = vk.load_instance(instance)) return missing_entry_point(name);
    std::vector<Listed> listed;
    auto devices = enumerate_physical(vk, instance);
    Status status = devices.status();
    if (status.ok()) {
        for (VkPhysicalDevice physical_device : devices.value()) {
            auto caps = probe_caps(vk, physical_device, compute_family(vk, physical_device).value_or(~0u));
            if (caps.ok()) {
                const std::string by_device = why_unusable(vk, physical_device), by_driver = why_refused(caps.value());
                listed.push_back({std::move(caps).value(), by_device.empty() ? by_driver : by_device});
            } else status = caps.status();
        }
    }
    vk.DestroyInstance(instance, nullptr);
    if (!status.ok()) return status;
    return listed;
}

Device::~Device() {
    if (owns_handle_ && handle && vk.DestroyDevice) vk.DestroyDevice(handle, nullptr);
    if (owns_instance_ && instance && vk.DestroyInstance) vk.DestroyInstance(instance, nullptr);
}

Status vk_status(VkResult result, const char* call) {
    if (result == VK_SUCCESS) return ok_status();
    std::string text = std::string(call);
    text = text.substr(0, text.find('(')) + " answered " + vk_result_name(result);
    switch (result) {
    case VK_ERROR_DEVICE_LOST: return {Code::device_lost, text};
    case VK_ERROR_OUT_OF_HOST_MEMORY: return {Code::out_of_host_memory, text};
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_OUT_OF_POOL_MEMORY:
    case VK_ERROR_TOO_MANY_OBJECTS: return {Code::out_of_device_memory, text};
    case VK_ERROR_FEATURE_NOT_PRESENT:
    case VK_ERROR_EXTENSION_NOT_PRESENT: return {Code::unsupported, text};
    default: return {Code::internal, text};
    }
}

Status Device::check(VkResult result, const char* call) {
    Status status = vk_status(result, call);
    if (status.code() != Code::device_lost) return status;
    if (!lost_) lost_by_ = status.message();
    lost_ = true;
    return lost_status();
}

Status Device::lost_status() const {
    return {Code::device_lost, lost_by_ + ": the Vulkan device was lost; destroy the engine and create a new one"};
}

Status Device::submit(const VkCommandBuffer* buffers, uint32_t count, VkFence fence) {
    if (lost_) return lost_status();
    VkSubmitInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    info.commandBufferCount = count;
    info.pCommandBuffers = buffers;
    if (lock_queue_) lock_queue_();
    VkResult result = vk.QueueSubmit(queue, 1, &info, fence);
    if (unlock_queue_) unlock_queue_();
    return check(result, "vkQueueSubmit");
}

Status Device::wait_until_done(VkFence fence) {
    constexpr int kAttempts = 16; // that fail for another reason, such as want of memory
    Status status;
    for (int i = 0; i < kAttempts && !lost_;) {
        VkResult result = vk.WaitForFences(handle, 1, &fence, VK_TRUE, 1'000'000'000);
        if (result == VK_SUCCESS) return ok_status();
        if (result == VK_TIMEOUT) continue;
        status = check(result, "vkWaitForFences");
        ++i;
    }
    if (lost_) return lost_status();
    lost_ = true;
    lost_by_ = status.message();
    return status;
}

} // namespace auspex
