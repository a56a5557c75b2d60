// The functions that stand in the table instead of the driver's.
#include "compilers/null_device.h"

#include "kernels/embedded_shaders.h"

#include <array>
#include <cstring>
#include <ctime>

namespace auspex::test {

uint64_t CompiledKernel::find(std::initializer_list<const char*> names, uint64_t otherwise) const {
    for (const char* one : names)
        if (const auto found = statistics.find(one); found != statistics.end()) return found->second;
    return otherwise;
}

std::vector<CompiledKernel>& compiled_kernels() {
    static std::vector<CompiledKernel> all;
    return all;
}

namespace {

constexpr uint64_t kHeapBytes = 16ull << 30;

VkFunctions real;
PFN_vkGetPipelineExecutablePropertiesKHR get_executables = nullptr;
PFN_vkGetPipelineExecutableStatisticsKHR get_statistics = nullptr;
bool says_statistics = false;
std::map<VkShaderModule, std::string> modules;
uint64_t next_handle = 0x1000;

template <typename T> T made_up() { return reinterpret_cast<T>(next_handle += 16); }

std::string name_of(const uint32_t* code) {
    static const std::map<const uint32_t*, std::string> names = [] {
        std::map<const uint32_t*, std::string> all;
        for (std::string_view name : embedded_shader_names()) all.emplace(embedded_shader(name).data(), name);
        return all;
    }();
    const auto found = names.find(code);
    return found != names.end() ? found->second : "?";
}

double thread_ms() {
    timespec now = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

// Two heaps and three types of memory, whatever the driver says, which without a device may be none at all.
void VKAPI_CALL memory_properties(VkPhysicalDevice, VkPhysicalDeviceMemoryProperties2* out) {
    VkPhysicalDeviceMemoryProperties& m = out->memoryProperties;
    m = {};
    m.memoryHeapCount = 2;
    m.memoryHeaps[0] = {kHeapBytes, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT};
    m.memoryHeaps[1] = {kHeapBytes, 0};
    constexpr VkMemoryPropertyFlags visible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    m.memoryTypeCount = 3;
    m.memoryTypes[0] = {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0};
    m.memoryTypes[1] = {visible, 1};
    m.memoryTypes[2] = {visible | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, 1};
    for (auto* next = static_cast<VkBaseOutStructure*>(out->pNext); next; next = next->pNext)
        if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT)
            for (VkDeviceSize& budget : reinterpret_cast<VkPhysicalDeviceMemoryBudgetPropertiesEXT*>(next)->heapBudget) budget = kHeapBytes;
}

VkResult VKAPI_CALL create_device(VkPhysicalDevice device, const VkDeviceCreateInfo* info, const VkAllocationCallbacks* callbacks, VkDevice* out) {
    uint32_t n = 0;
    real.EnumerateDeviceExtensionProperties(device, nullptr, &n, nullptr);
    std::vector<VkExtensionProperties> offered(n);
    real.EnumerateDeviceExtensionProperties(device, nullptr, &n, offered.data());
    says_statistics = false;
    for (const VkExtensionProperties& one : offered)
        says_statistics |= std::strcmp(one.extensionName, VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME) == 0;
    if (!says_statistics) return real.CreateDevice(device, info, callbacks, out); // nothing but time and size is known then
    std::vector<const char*> names(info->ppEnabledExtensionNames, info->ppEnabledExtensionNames + info->enabledExtensionCount);
    names.push_back(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
    VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR wanted = {};
    wanted.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR;
    wanted.pipelineExecutableInfo = VK_TRUE;
    wanted.pNext = const_cast<void*>(info->pNext);
    VkDeviceCreateInfo more = *info;
    more.pNext = &wanted;
    more.enabledExtensionCount = static_cast<uint32_t>(names.size());
    more.ppEnabledExtensionNames = names.data();
    const VkResult result = real.CreateDevice(device, &more, callbacks, out);
    if (result != VK_SUCCESS) return result;
    get_executables = reinterpret_cast<PFN_vkGetPipelineExecutablePropertiesKHR>(real.GetDeviceProcAddr(*out, "vkGetPipelineExecutablePropertiesKHR"));
    get_statistics = reinterpret_cast<PFN_vkGetPipelineExecutableStatisticsKHR>(real.GetDeviceProcAddr(*out, "vkGetPipelineExecutableStatisticsKHR"));
    return result;
}

void note_statistics(VkDevice device, VkPipeline pipeline, CompiledKernel& kernel) {
    VkPipelineInfoKHR of = {VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR, nullptr, pipeline};
    std::array<VkPipelineExecutablePropertiesKHR, 8> executables = {};
    for (auto& one : executables) one.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR;
    auto n = static_cast<uint32_t>(executables.size());
    get_executables(device, &of, &n, executables.data());
    if (n == 0) return;
    kernel.subgroup_size = executables[0].subgroupSize;
    VkPipelineExecutableInfoKHR which = {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR, nullptr, pipeline, 0};
    std::array<VkPipelineExecutableStatisticKHR, 64> all = {};
    for (auto& one : all) one.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR;
    n = static_cast<uint32_t>(all.size());
    get_statistics(device, &which, &n, all.data());
    for (uint32_t i = 0; i < n; ++i) {
        const bool is_real = all[i].format == VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR;
        kernel.statistics[all[i].name] = is_real ? static_cast<uint64_t>(all[i].value.f64) : all[i].value.u64;
    }
}

VkResult VKAPI_CALL create_module(VkDevice device, const VkShaderModuleCreateInfo* info, const VkAllocationCallbacks* callbacks, VkShaderModule* out) {
    const VkResult result = real.CreateShaderModule(device, info, callbacks, out);
    if (result == VK_SUCCESS) modules[*out] = name_of(info->pCode); // handles come back: the latest counts
    return result;
}

VkResult VKAPI_CALL create_pipelines(VkDevice device, VkPipelineCache cache, uint32_t n, const VkComputePipelineCreateInfo* infos,
                                     const VkAllocationCallbacks* callbacks, VkPipeline* out) {
    VkResult result = VK_SUCCESS;
    for (uint32_t i = 0; i < n; ++i) {
        VkComputePipelineCreateInfo info = infos[i];
        if (says_statistics) info.flags |= VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR;
        CompiledKernel kernel;
        kernel.name = modules[info.stage.module];
        if (const VkSpecializationInfo* constants = info.stage.pSpecializationInfo) {
            kernel.constants.resize(constants->mapEntryCount);
            for (uint32_t c = 0; c < constants->mapEntryCount; ++c) {
                const VkSpecializationMapEntry& entry = constants->pMapEntries[c];
                std::memcpy(&kernel.constants[c], static_cast<const char*>(constants->pData) + entry.offset, sizeof(uint32_t));
            }
        }
        for (const auto* next = static_cast<const VkBaseInStructure*>(info.stage.pNext); next; next = next->pNext)
            if (next->sType == VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO)
                kernel.pinned = reinterpret_cast<const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo*>(next)->requiredSubgroupSize;
        const double begin = thread_ms();
        const VkResult one = real.CreateComputePipelines(device, cache, 1, &info, callbacks, &out[i]);
        kernel.ms = thread_ms() - begin;
        kernel.failed = one != VK_SUCCESS;
        if (one != VK_SUCCESS) result = one;
        else if (says_statistics) note_statistics(device, out[i], kernel);
        compiled_kernels().push_back(std::move(kernel));
    }
    return result;
}

// What the host sees of its memory; after every submission all of it holds the same bytes, so that results which the engine
// compares are equal, and not 0: matrix units pass their check.
std::map<VkDeviceMemory, std::vector<char>> mapped;
std::map<VkDeviceMemory, VkDeviceSize> allocation_sizes;

VkResult VKAPI_CALL allocate(VkDevice, const VkMemoryAllocateInfo* info, const VkAllocationCallbacks*, VkDeviceMemory* out) {
    *out = made_up<VkDeviceMemory>();
    allocation_sizes[*out] = info->allocationSize;
    return VK_SUCCESS;
}

VkResult VKAPI_CALL map_memory(VkDevice, VkDeviceMemory memory, VkDeviceSize offset, VkDeviceSize, VkMemoryMapFlags, void** out) {
    std::vector<char>& bytes = mapped[memory];
    bytes.resize(allocation_sizes[memory]);
    *out = bytes.data() + offset;
    return VK_SUCCESS;
}

void VKAPI_CALL free_memory(VkDevice, VkDeviceMemory memory, const VkAllocationCallbacks*) {
    mapped.erase(memory);
    allocation_sizes.erase(memory);
}

VkResult VKAPI_CALL submit(VkQueue, uint32_t, const VkSubmitInfo*, VkFence) {
    for (auto& [memory, bytes] : mapped) std::memset(bytes.data(), 0x3c, bytes.size());
    return VK_SUCCESS;
}

std::map<VkBuffer, VkDeviceSize> buffer_sizes;

VkResult VKAPI_CALL create_buffer(VkDevice, const VkBufferCreateInfo* info, const VkAllocationCallbacks*, VkBuffer* out) {
    *out = made_up<VkBuffer>();
    buffer_sizes[*out] = info->size;
    return VK_SUCCESS;
}

void VKAPI_CALL requirements(VkDevice, VkBuffer buffer, VkMemoryRequirements* out) {
    *out = {(buffer_sizes[buffer] + 255) / 256 * 256, 256, 7};
}

VkResult VKAPI_CALL allocate_commands(VkDevice, const VkCommandBufferAllocateInfo* info, VkCommandBuffer* out) {
    for (uint32_t i = 0; i < info->commandBufferCount; ++i) out[i] = made_up<VkCommandBuffer>();
    return VK_SUCCESS;
}

VkResult VKAPI_CALL query_results(VkDevice, VkQueryPool, uint32_t, uint32_t, size_t bytes, void* out, VkDeviceSize, VkQueryResultFlags) {
    std::memset(out, 0, bytes);
    return VK_SUCCESS;
}

// These do nothing, and say that it went well.
template <typename R, typename... Args> void make_empty(R(VKAPI_PTR*& function)(Args...)) {
    function = [](Args...) -> R {
        if constexpr (std::is_same_v<R, VkResult>) return VK_SUCCESS;
    };
}
template <typename... Functions> void make_all_empty(Functions&... functions) { (make_empty(functions), ...); }

// These make an object of which only the handle is ever used.
template <typename D, typename I, typename H> void make_up(VkResult(VKAPI_PTR*& function)(D, I, const VkAllocationCallbacks*, H*)) {
    function = [](D, I, const VkAllocationCallbacks*, H* out) {
        *out = made_up<H>();
        return VK_SUCCESS;
    };
}

} // namespace

VkHook null_device() {
    return [](VkFunctions& vk) {
        if (!vk.CreateDevice) return;
        if (!vk.CreateBuffer) { // the instance is there, the device is not
            real = vk;
            vk.GetPhysicalDeviceMemoryProperties2 = memory_properties;
            vk.CreateDevice = create_device;
            return;
        }
        const PFN_vkCreateDevice create = real.CreateDevice;
        const PFN_vkEnumerateDeviceExtensionProperties extensions = real.EnumerateDeviceExtensionProperties;
        real = vk;
        real.CreateDevice = create;
        real.EnumerateDeviceExtensionProperties = extensions;
        vk.CreateShaderModule = create_module;
        vk.CreateComputePipelines = create_pipelines;
        vk.AllocateMemory = allocate;
        vk.MapMemory = map_memory;
        vk.FreeMemory = free_memory;
        vk.QueueSubmit = submit;
        vk.CreateBuffer = create_buffer;
        vk.GetBufferMemoryRequirements = requirements;
        vk.AllocateCommandBuffers = allocate_commands;
        vk.GetQueryPoolResults = query_results;
        make_up(vk.CreateBufferView);
        make_up(vk.CreateDescriptorPool);
        make_up(vk.CreateCommandPool);
        make_up(vk.CreateQueryPool);
        make_up(vk.CreateFence);
        make_all_empty(vk.DestroyBuffer, vk.DestroyBufferView, vk.DestroyDescriptorPool, vk.DestroyCommandPool, vk.DestroyQueryPool, vk.DestroyFence,
                       vk.BindBufferMemory, vk.AllocateDescriptorSets, vk.UpdateDescriptorSets, vk.FreeCommandBuffers, vk.BeginCommandBuffer,
                       vk.EndCommandBuffer, vk.ResetFences, vk.GetFenceStatus, vk.WaitForFences);
        make_all_empty(vk.CmdPipelineBarrier, vk.CmdBindPipeline, vk.CmdBindDescriptorSets, vk.CmdPushConstants, vk.CmdDispatch, vk.CmdDispatchIndirect,
                       vk.CmdCopyBuffer, vk.CmdFillBuffer, vk.CmdResetQueryPool, vk.CmdWriteTimestamp, vk.CmdCopyQueryPoolResults);
        vk.CmdBeginDebugUtilsLabelEXT = nullptr;
        vk.CmdEndDebugUtilsLabelEXT = nullptr;
    };
}

} // namespace auspex::test
