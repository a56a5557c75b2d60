// Buffers and the memory blocks behind them. A Buffer owns, a BufferView does not.
// Memory is reserved in blocks, because drivers limit the number of allocations; a block goes when its last buffer goes.
#pragma once

#include "device/device.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace auspex {

enum class MemoryUse {
    device,   // only the GPU touches it
    upload,   // the host writes, the GPU reads: host-visible and coherent
    readback, // the GPU writes, the host reads: host-visible, coherent, cached where there is such memory
};

struct BufferView {
    VkBuffer buffer = VK_NULL_HANDLE;
    uint64_t offset = 0; // bytes
    uint64_t size = 0;   // bytes
    uint64_t slack = 0;  // bytes that may be bound after them

    // For what a form of an op does not read.
    BufferView or_else(const BufferView& other) const { return buffer ? *this : other; }
    BufferView sub(uint64_t from, uint64_t bytes) const { return {buffer, offset + from, bytes, slack}; }
};

class MemoryPool;

class Buffer {
  public:
    Buffer() = default;
    Buffer(Buffer&& other) noexcept { *this = std::move(other); }
    Buffer& operator=(Buffer&& other) noexcept;
    ~Buffer() { release(); }

    BufferView view() const { return {handle_, 0, size_, slack_}; }
    BufferView view(uint64_t offset, uint64_t bytes) const { return {handle_, offset, bytes, slack_}; }
    uint64_t size() const { return size_; }
    std::byte* mapped() const { return mapped_; } // null for MemoryUse::device
    explicit operator bool() const { return handle_ != VK_NULL_HANDLE; }

  private:
    friend class MemoryPool;
    void release();
    MemoryPool* pool_ = nullptr;
    VkBuffer handle_ = VK_NULL_HANDLE;
    uint64_t size_ = 0;
    uint64_t slack_ = 0; // bytes after size_
    std::byte* mapped_ = nullptr;
    size_t block_ = 0;
};

// Makes buffers on one device. Must outlive them.
class MemoryPool {
  public:
    // rehearse: reckons everything as if it reserved it, but reserves no device memory, only what the host writes and reads.
    // Such buffers must not be used by the GPU. To learn what an engine would take, it is built with such a pool.
    explicit MemoryPool(Device& device, bool rehearse = false) : device_(&device), rehearse_(rehearse) {}
    ~MemoryPool();
    MemoryPool(const MemoryPool&) = delete;
    MemoryPool& operator=(const MemoryPool&) = delete;

    // A storage buffer that can also be copied from and to and hold indirect arguments. bytes > 0.
    // Contents are undefined. out_of_device_memory names the request; unsupported when it exceeds the device's limits.
    Result<Buffer> create(uint64_t bytes, MemoryUse use);

    uint64_t reserved_bytes() const { return reserved_bytes_; } // in blocks, alive now
    uint64_t used_bytes() const { return used_bytes_; }         // by buffers, alive now
    bool rehearses() const { return rehearse_; }

  private:
    friend class Buffer;
    struct Block {
        VkDeviceMemory memory = VK_NULL_HANDLE; // null while rehearsing
        uint32_t type = 0;
        uint64_t size = 0, used = 0; // bytes; bump allocation; size 0: a free entry
        uint32_t live = 0;           // buffers
        std::byte* mapped = nullptr;
    };
    Result<uint32_t> memory_type(uint32_t allowed, MemoryUse use) const;
    Result<size_t> reserve(const VkMemoryRequirements& needs, uint32_t type, bool mapped, uint64_t* offset);
    Status allocate(Block& block, bool mapped);
    Device* device_;
    bool rehearse_ = false;
    std::vector<Block> blocks_;
    uint64_t reserved_bytes_ = 0, used_bytes_ = 0;
};

} // namespace auspex
