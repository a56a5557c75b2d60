// Records segments; every barrier of the engine is written here.
#include "device/recording.h"

#include <algorithm>
#include <array>

namespace auspex {

namespace {
constexpr uint32_t kSetsPerPool = 128;
constexpr uint32_t kBuffersPerPool = 1024;
constexpr uint32_t kTexelsPerPool = 512;
constexpr uint32_t kMostTexels = 4; // of a kernel: no device has fewer (maxPerStageDescriptorStorageImages)
constexpr VkPipelineStageFlags kCompute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
constexpr VkPipelineStageFlags kComputeAndIndirect = kCompute | VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT;
constexpr VkAccessFlags kShaderAccess = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
constexpr VkAccessFlags kTransferAccess = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
} // namespace

Result<std::unique_ptr<Recording>> Recording::create(Device& device, uint32_t max_regions, const Buffer* times) {
    std::unique_ptr<Recording> recording(new Recording(device));
    VkCommandPoolCreateInfo pool = {};
    pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    pool.queueFamilyIndex = device.queue_family;
    AUSPEX_VK_MAKE(device, recording->pool_, CreateCommandPool(device.handle, &pool, nullptr, &recording->pool_));
    if (max_regions > 0 && device.caps.timestamp_period_ns > 0) {
        VkQueryPoolCreateInfo queries = {};
        queries.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
        queries.queryType = VK_QUERY_TYPE_TIMESTAMP;
        queries.queryCount = 2 * max_regions;
        AUSPEX_VK_MAKE(device, recording->queries_, CreateQueryPool(device.handle, &queries, nullptr, &recording->queries_));
        recording->max_regions_ = max_regions;
        recording->times_ = times;
    }
    return recording;
}

std::unique_ptr<Recording> Recording::nowhere(Device& device) {
    std::unique_ptr<Recording> recording(new Recording(device));
    recording->fail({Code::internal, "this was never to be recorded"});
    return recording;
}

Recording::~Recording() {
    for (VkBufferView view : views_) device_->vk.DestroyBufferView(device_->handle, view, nullptr);
    for (VkDescriptorPool pool : descriptor_pools_) device_->vk.DestroyDescriptorPool(device_->handle, pool, nullptr);
    if (queries_) device_->vk.DestroyQueryPool(device_->handle, queries_, nullptr);
    if (pool_) device_->vk.DestroyCommandPool(device_->handle, pool_, nullptr);
}

void Recording::begin_segment(const char* label) {
    if (!ok()) return;
    VkCommandBufferAllocateInfo info = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, pool_,
                                        VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
    VkCommandBuffer buffer = VK_NULL_HANDLE;
    fail(device_->check(device_->vk.AllocateCommandBuffers(device_->handle, &info, &buffer), "vkAllocateCommandBuffers"));
    if (!ok()) return;
    segments_.push_back(buffer);
    label_ = label;
    VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr, 0, nullptr};
    fail(device_->check(device_->vk.BeginCommandBuffer(buffer, &begin), "vkBeginCommandBuffer"));
    if (!ok()) return;
    current_ = buffer;
    bound_.clear(); // the barrier below is for indirect arguments, too
    if (device_->vk.CmdBeginDebugUtilsLabelEXT) {
        VkDebugUtilsLabelEXT text = {VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT, nullptr, label, {0, 0, 0, 0}};
        device_->vk.CmdBeginDebugUtilsLabelEXT(current_, &text);
    }
    // Submission order alone is no memory dependency: earlier submissions wrote what this one reads.
    memory_barrier(kCompute | VK_PIPELINE_STAGE_TRANSFER_BIT | VK_PIPELINE_STAGE_HOST_BIT,
                   kShaderAccess | kTransferAccess | VK_ACCESS_HOST_WRITE_BIT,
                   kComputeAndIndirect | VK_PIPELINE_STAGE_TRANSFER_BIT,
                   kShaderAccess | kTransferAccess | VK_ACCESS_INDIRECT_COMMAND_READ_BIT);
}

void Recording::end_segment() {
    if (!ok() || !current_) return;
    copy_times();
    memory_barrier(kCompute | VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
                   VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    if (device_->vk.CmdEndDebugUtilsLabelEXT) device_->vk.CmdEndDebugUtilsLabelEXT(current_);
    fail(device_->check(device_->vk.EndCommandBuffer(current_), "vkEndCommandBuffer"));
    current_ = VK_NULL_HANDLE;
}

void Recording::cut() {
    const std::optional<Region> region = region_;
    if (region) end_region();
    end_segment();
    begin_segment(label_);
    if (region) begin_region(*region);
}

// Of the current segment's regions.
void Recording::copy_times() {
    if (!times_) return;
    const auto is_here = [&](const TimedRegion& region) { return region.segment + 1 == segments_.size(); };
    const auto n = 2 * static_cast<uint32_t>(std::count_if(regions_.begin(), regions_.end(), is_here));
    const auto first = 2 * static_cast<uint32_t>(regions_.size()) - n;
    if (n > 0)
        device_->vk.CmdCopyQueryPoolResults(current_, queries_, first, n, times_->view().buffer, times_->view().offset + first * 8, 8,
                                            VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
}

void Recording::memory_barrier(VkPipelineStageFlags from, VkAccessFlags wrote, VkPipelineStageFlags to, VkAccessFlags reads) {
    if (!ok()) return;
    VkMemoryBarrier barrier = {VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, wrote, reads};
    device_->vk.CmdPipelineBarrier(current_, from, to, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

void Recording::barrier() {
    n_barriers_ += 1;
    memory_barrier(kCompute, kShaderAccess, kCompute, kShaderAccess);
}

void Recording::transfer_barrier() {
    memory_barrier(kCompute | VK_PIPELINE_STAGE_TRANSFER_BIT, kShaderAccess | kTransferAccess,
                   kCompute | VK_PIPELINE_STAGE_TRANSFER_BIT, kShaderAccess | kTransferAccess);
}

Result<VkDescriptorSet> Recording::allocate_set(const Kernel& kernel) {
    VkDescriptorSet set = VK_NULL_HANDLE;
    VkDescriptorSetLayout layout = kernel.set_layout();
    VkDescriptorSetAllocateInfo info = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, nullptr, VK_NULL_HANDLE, 1, &layout};
    if (!descriptor_pools_.empty()) {
        info.descriptorPool = descriptor_pools_.back();
        VkResult result = device_->vk.AllocateDescriptorSets(device_->handle, &info, &set);
        if (result == VK_SUCCESS) return set;
        if (result != VK_ERROR_OUT_OF_POOL_MEMORY && result != VK_ERROR_FRAGMENTED_POOL)
            return device_->check(result, "vkAllocateDescriptorSets");
    }
    const VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, kBuffersPerPool},
                                          {VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER, kTexelsPerPool}};
    VkDescriptorPoolCreateInfo pool_info = {};
    pool_info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
    pool_info.maxSets = kSetsPerPool;
    pool_info.poolSizeCount = 2;
    pool_info.pPoolSizes = sizes;
    VkDescriptorPool pool = VK_NULL_HANDLE;
    AUSPEX_VK(*device_, CreateDescriptorPool(device_->handle, &pool_info, nullptr, &pool));
    descriptor_pools_.push_back(pool);
    info.descriptorPool = pool;
    AUSPEX_VK(*device_, AllocateDescriptorSets(device_->handle, &info, &set));
    return set;
}

// All whole texels of a buffer.
Result<VkBufferView> Recording::texel_view(const BufferView& buffer, uint32_t texel_bytes) {
    uint64_t range = buffer.size / texel_bytes * texel_bytes;
    if (range > 0 && (range >> 8 & 0xff) == 0) range += buffer.slack; // buffer.cpp says why
    if (range == 0 || range / texel_bytes > device_->caps.max_texels)
        return Status(Code::internal, "a texel buffer of " + std::to_string(range) + " bytes is outside the device's limits");
    VkBufferViewCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO;
    info.buffer = buffer.buffer;
    info.format = texel_bytes == 16 ? VK_FORMAT_R32G32B32A32_UINT : VK_FORMAT_R32_UINT;
    info.offset = buffer.offset;
    info.range = range;
    VkBufferView view = VK_NULL_HANDLE;
    AUSPEX_VK_MAKE(*device_, view, CreateBufferView(device_->handle, &info, nullptr, &view));
    views_.push_back(view);
    return view;
}

void Recording::record_dispatch(const Kernel& kernel, const void* args, size_t args_bytes, std::span<const BufferView> bindings) {
    if (!ok()) return;
    n_dispatches_ += 1;
    const size_t count = bindings.size();
    if (count != kernel.takes().n_bindings || args_bytes != kernel.takes().args_bytes)
        return fail({Code::internal, "kernel " + kernel.name() + " takes " + std::to_string(kernel.takes().n_bindings) +
                                         " buffers and " + std::to_string(kernel.takes().args_bytes) + " bytes of arguments"});
    auto set = allocate_set(kernel);
    if (!set.ok()) return fail(set.status());
    std::array<VkDescriptorBufferInfo, kMostBindings> infos;
    std::array<VkBufferView, kMostTexels> views;
    std::array<VkWriteDescriptorSet, kMostBindings + kMostTexels> writes;
    const std::vector<TexelBinding>& texels = kernel.texels();
    if (count > infos.size() || texels.size() > views.size()) return fail({Code::internal, "kernel " + kernel.name() + " binds too many buffers"});
    for (uint32_t i = 0; i < count; ++i) {
        if (!bindings[i].buffer) return fail({Code::internal, "kernel " + kernel.name() + " has no buffer at slot " + std::to_string(i)});
        if (bindings[i].size > device_->caps.max_storage_buffer_range)
            return fail({Code::internal, "kernel " + kernel.name() + " binds " + std::to_string(bindings[i].size) +
                                             " bytes, above the device's range"});
        infos[i] = {bindings[i].buffer, bindings[i].offset, bindings[i].size};
        writes[i] = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, nullptr, set.value(), i, 0, 1, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                     nullptr, &infos[i], nullptr};
    }
    for (uint32_t i = 0; i < texels.size(); ++i) {
        auto view = texel_view(bindings[texels[i].of], texels[i].texel_bytes);
        if (!view.ok()) return fail(view.status());
        views[i] = view.value();
        writes[count + i] = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, nullptr, set.value(), texels[i].binding, 0, 1,
                             VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER, nullptr, nullptr, &views[i]};
    }
    bound_.insert(bound_.end(), bindings.begin(), bindings.end());
    device_->vk.UpdateDescriptorSets(device_->handle, static_cast<uint32_t>(count + texels.size()), writes.data(), 0, nullptr);
    device_->vk.CmdBindPipeline(current_, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.pipeline());
    device_->vk.CmdBindDescriptorSets(current_, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.layout(), 0, 1, &set.value(), 0, nullptr);
    if (args_bytes)
        device_->vk.CmdPushConstants(current_, kernel.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0, static_cast<uint32_t>(args_bytes), args);
}

void Recording::dispatch_nothing(const Kernel& kernel, BufferView any) {
    const std::array<std::byte, 128> no_args = {};
    const std::vector<BufferView> bindings(kernel.takes().n_bindings, any);
    record_dispatch(kernel, no_args.data(), kernel.takes().args_bytes, bindings);
    dispatch_groups({0, 1, 1});
}

void Recording::dispatch_groups(Groups groups) {
    if (!ok()) return;
    const uint32_t* limit = device_->caps.max_groups;
    if (groups.x > limit[0] || groups.y > limit[1] || groups.z > limit[2])
        return fail({Code::internal, "a grid of " + std::to_string(groups.x) + "x" + std::to_string(groups.y) + "x" +
                                         std::to_string(groups.z) + " workgroups exceeds the device's limits"});
    device_->vk.CmdDispatch(current_, groups.x, groups.y, groups.z);
}

void Recording::dispatch_counts(BufferView counts) {
    const auto overlaps = [&](const BufferView& view) {
        return view.buffer == counts.buffer && view.offset < counts.offset + counts.size && counts.offset < view.offset + view.size;
    };
    if (std::any_of(bound_.begin(), bound_.end(), overlaps)) {
        memory_barrier(kCompute, VK_ACCESS_SHADER_WRITE_BIT, VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT, VK_ACCESS_INDIRECT_COMMAND_READ_BIT);
        bound_.clear();
    }
    if (ok()) device_->vk.CmdDispatchIndirect(current_, counts.buffer, counts.offset);
}

void Recording::copy(BufferView from, BufferView to) {
    if (!ok()) return;
    VkBufferCopy region = {from.offset, to.offset, from.size};
    device_->vk.CmdCopyBuffer(current_, from.buffer, to.buffer, 1, &region);
}

void Recording::fill(BufferView view, uint32_t value) {
    if (ok()) device_->vk.CmdFillBuffer(current_, view.buffer, view.offset, view.size & ~3ull, value);
}

void Recording::begin_region(Region region) {
    if (!ok()) return;
    if (device_->vk.CmdBeginDebugUtilsLabelEXT) {
        VkDebugUtilsLabelEXT text = {VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT, nullptr, region_name(region), {0, 0, 0, 0}};
        device_->vk.CmdBeginDebugUtilsLabelEXT(current_, &text);
    }
    region_ = region;
    region_open_ = regions_.size() < max_regions_;
    if (!region_open_) return;
    uint32_t query = 2 * static_cast<uint32_t>(regions_.size());
    device_->vk.CmdResetQueryPool(current_, queries_, query, 2);
    device_->vk.CmdWriteTimestamp(current_, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_, query);
    regions_.push_back({region, static_cast<uint32_t>(segments_.size() - 1)});
}

void Recording::end_region() {
    if (!ok()) return;
    if (region_open_)
        device_->vk.CmdWriteTimestamp(current_, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_, 2 * static_cast<uint32_t>(regions_.size()) - 1);
    if (device_->vk.CmdEndDebugUtilsLabelEXT) device_->vk.CmdEndDebugUtilsLabelEXT(current_);
    region_.reset();
    region_open_ = false;
}

Status Recording::finish() {
    return status_;
}

std::vector<Recording::RegionTime> Recording::region_times() const {
    std::vector<RegionTime> times;
    std::vector<uint64_t> ticks(2 * regions_.size());
    bool available = !regions_.empty();
    if (available && times_) std::memcpy(ticks.data(), times_->mapped(), ticks.size() * 8);
    else if (available) { // a lost device is remembered, times are not worth an error
        VkResult result = device_->vk.GetQueryPoolResults(device_->handle, queries_, 0, static_cast<uint32_t>(ticks.size()),
                                                          ticks.size() * 8, ticks.data(), 8, VK_QUERY_RESULT_64_BIT);
        available = device_->check(result, "vkGetQueryPoolResults").ok();
    }
    uint64_t mask = device_->caps.timestamp_valid_bits >= 64 ? ~0ull : (1ull << device_->caps.timestamp_valid_bits) - 1;
    for (size_t i = 0; i < regions_.size(); ++i) {
        const uint64_t begin = ticks[2 * i] & mask, end = ticks[2 * i + 1] & mask;
        double ms = available ? static_cast<double>((end - begin) & mask) * static_cast<double>(device_->caps.timestamp_period_ns) * 1e-6 : -1;
        times.push_back({regions_[i].region, regions_[i].segment, ms, begin, end});
    }
    return times;
}

} // namespace auspex
