// Block allocation: bump pointers, because buffers of one engine are made together and go together.
#include "device/buffer.h"

#include "base/checked.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace auspex {

namespace {
constexpr uint64_t kBlockBytes = 64ull << 20;
constexpr uint64_t kTexelSlack = 256, kMostRounding = 512; // bytes; rounding: of a buffer's size by the driver

// llvmpipe compiles a shader again for texel buffers that differ in trifles: whether the size of the buffer is a power of two, and
// whether bits 8 to 15 of the view's size are all zero. So on CPU devices a buffer is a little larger than asked for, and neither is.
uint64_t texel_slack(const DeviceCaps& caps, uint64_t size) {
    return caps.type == VK_PHYSICAL_DEVICE_TYPE_CPU && size + 2 * kTexelSlack + kMostRounding <= caps.max_allocation_bytes ? kTexelSlack : 0;
}
} // namespace

Buffer& Buffer::operator=(Buffer&& other) noexcept {
    if (this == &other) return *this;
    release();
    pool_ = std::exchange(other.pool_, nullptr);
    handle_ = std::exchange(other.handle_, VK_NULL_HANDLE);
    size_ = std::exchange(other.size_, 0);
    slack_ = std::exchange(other.slack_, 0);
    mapped_ = std::exchange(other.mapped_, nullptr);
    block_ = other.block_;
    return *this;
}

void Buffer::release() {
    if (!handle_) return;
    Device& device = *pool_->device_;
    device.vk.DestroyBuffer(device.handle, handle_, nullptr);
    handle_ = VK_NULL_HANDLE;
    pool_->used_bytes_ -= size_;
    MemoryPool::Block& block = pool_->blocks_[block_];
    if (--block.live > 0) return;
    if (block.memory) device.vk.FreeMemory(device.handle, block.memory, nullptr);
    pool_->reserved_bytes_ -= block.size;
    block = {};
}

MemoryPool::~MemoryPool() {
    for (Block& block : blocks_)
        if (block.memory) device_->vk.FreeMemory(device_->handle, block.memory, nullptr);
}

Result<uint32_t> MemoryPool::memory_type(uint32_t allowed, MemoryUse use) const {
    const VkPhysicalDeviceMemoryProperties& memory = device_->caps.memory;
    const VkMemoryPropertyFlags host = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    VkMemoryPropertyFlags required = use == MemoryUse::device ? 0 : host;
    VkMemoryPropertyFlags wanted = host;
    if (use == MemoryUse::device) wanted = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    if (use == MemoryUse::readback) wanted |= VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    for (VkMemoryPropertyFlags flags : {wanted, required})
        for (uint32_t i = 0; i < memory.memoryTypeCount; ++i)
            if ((allowed >> i & 1u) && (memory.memoryTypes[i].propertyFlags & flags) == flags) return i;
    return Status(Code::unsupported, "the device has no memory type that the engine can use");
}

Status MemoryPool::allocate(Block& block, bool mapped) {
    VkMemoryAllocateInfo info = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, nullptr, block.size, block.type};
    Status status = device_->check(device_->vk.AllocateMemory(device_->handle, &info, nullptr, &block.memory), "vkAllocateMemory");
    if (!status.ok())
        return Status(status.code(), status.message() + " for " + std::to_string(block.size >> 20) + " MiB, with " +
                                         std::to_string(reserved_bytes_ >> 20) + " MiB reserved before");
    if (!mapped) return ok_status();
    void* address = nullptr;
    status = device_->check(device_->vk.MapMemory(device_->handle, block.memory, 0, VK_WHOLE_SIZE, 0, &address), "vkMapMemory");
    if (!status.ok()) device_->vk.FreeMemory(device_->handle, block.memory, nullptr);
    block.mapped = static_cast<std::byte*>(address);
    return status;
}

Result<size_t> MemoryPool::reserve(const VkMemoryRequirements& needs, uint32_t type, bool mapped, uint64_t* offset) {
    for (size_t i = 0; i < blocks_.size(); ++i) {
        Block& block = blocks_[i];
        if (block.size == 0 || block.type != type || (block.mapped != nullptr) != mapped) continue;
        uint64_t at = round_up<uint64_t>(block.used, needs.alignment);
        if (at + needs.size > block.size) continue;
        *offset = at;
        return i;
    }
    // Small requests share a block; large ones get their own, so that nothing is reserved in vain.
    uint64_t limit = device_->caps.max_allocation_bytes;
    uint64_t heap = device_->caps.memory.memoryHeaps[device_->caps.memory.memoryTypes[type].heapIndex].size;
    uint64_t shared_block = std::min({kBlockBytes, limit, std::max<uint64_t>(heap / 16, 1u << 20)});
    if (mapped) shared_block = std::min<uint64_t>(shared_block, 8u << 20);
    Block block;
    block.type = type;
    block.size = needs.size > shared_block / 4 ? needs.size : shared_block;
    if (!rehearse_ || mapped) AUSPEX_TRY(allocate(block, mapped));
    reserved_bytes_ += block.size;
    *offset = 0;
    auto free_entry = std::find_if(blocks_.begin(), blocks_.end(), [](const Block& b) { return b.size == 0; });
    if (free_entry != blocks_.end()) {
        *free_entry = block;
        return static_cast<size_t>(free_entry - blocks_.begin());
    }
    blocks_.push_back(block);
    return blocks_.size() - 1;
}

Result<Buffer> MemoryPool::create(uint64_t bytes, MemoryUse use) {
    if (device_->lost()) return device_->lost_status();
    if (bytes == 0) return Status(Code::internal, "a buffer of no bytes was asked for");
    if (bytes > device_->caps.max_allocation_bytes)
        return Status(Code::unsupported, "a buffer of " + std::to_string(bytes) + " bytes exceeds the device's largest allocation of " +
                                             std::to_string(device_->caps.max_allocation_bytes) + " bytes");
    Buffer buffer;
    VkBufferCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
    const uint64_t size = round_up<uint64_t>(bytes, 16), slack = texel_slack(device_->caps, size);
    info.size = slack > 0 && std::has_single_bit(size + slack) ? size + slack + 16 : size + slack;
    info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                 VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT | VK_BUFFER_USAGE_STORAGE_TEXEL_BUFFER_BIT;
    VkBuffer handle = VK_NULL_HANDLE;
    AUSPEX_VK(*device_, CreateBuffer(device_->handle, &info, nullptr, &handle));
    VkMemoryRequirements needs = {};
    device_->vk.GetBufferMemoryRequirements(device_->handle, handle, &needs);
    auto finish = [&]() -> Status {
        if (needs.size > device_->caps.max_allocation_bytes)
            return {Code::unsupported, "a buffer that takes " + std::to_string(needs.size) + " bytes exceeds the device's largest allocation of " +
                                           std::to_string(device_->caps.max_allocation_bytes) + " bytes"};
        AUSPEX_TRY_ASSIGN(type, memory_type(needs.memoryTypeBits, use));
        uint64_t offset = 0;
        AUSPEX_TRY_ASSIGN(index, reserve(needs, type, use != MemoryUse::device, &offset));
        Block& block = blocks_[index];
        if (block.memory) AUSPEX_VK(*device_, BindBufferMemory(device_->handle, handle, block.memory, offset));
        block.used = offset + needs.size;
        block.live += 1;
        used_bytes_ += size;
        buffer.pool_ = this;
        buffer.handle_ = handle;
        buffer.size_ = size;
        buffer.slack_ = slack;
        buffer.mapped_ = block.mapped ? block.mapped + offset : nullptr;
        buffer.block_ = index;
        return ok_status();
    };
    Status status = finish();
    if (!status.ok()) {
        device_->vk.DestroyBuffer(device_->handle, handle, nullptr);
        return status;
    }
    return buffer;
}

} // namespace auspex
