// Bytes from the host to device memory through one staging buffer. Waits: for loading only.
#pragma once

#include "device/buffer.h"
#include "device/recording.h"
#include "tensor/tensor.h"

#include <functional>
#include <span>

namespace auspex {

class Uploader {
  public:
    static constexpr uint64_t kStagingBytes = 8ull << 20;

    static Result<std::unique_ptr<Uploader>> create(Device& device, MemoryPool& memory);
    ~Uploader();

    // Writes view.size bytes; `fill(offset, out)` provides [offset, offset + out.size()) in ascending pieces.
    using Fill = std::function<Status(uint64_t offset, std::span<std::byte> out)>;
    Status write_and_wait(BufferView view, const Fill& fill);
    Status write_and_wait(const Buffer& buffer, std::span<const std::byte> data); // to its beginning
    Status zero_and_wait(BufferView view);
    // Runs what `record` records; it makes so many bytes, which count as uploaded.
    Status make_and_wait(uint64_t bytes, const std::function<void(Recording&)>& record);

    // One segment, done before this returns; recorded before, or by `record` under this label.
    Status submit_and_wait(const Recording& recording);
    Status run_and_wait(const char* label, const std::function<void(Recording&)>& record);

    uint64_t uploaded_bytes() const { return uploaded_bytes_; }
    bool rehearses() const { return rehearse_; } // made with a rehearsing pool: counts, reads and writes nothing
    std::function<void(uint64_t uploaded_bytes)> progress; // after each piece

  private:
    Uploader(Device& device) : device_(&device) {}
    Device* device_;
    bool rehearse_ = false;
    Buffer staging_;
    VkFence fence_ = VK_NULL_HANDLE;
    uint64_t uploaded_bytes_ = 0;
};

// A buffer of zeros.
Result<Buffer> create_zeroed(MemoryPool& memory, Uploader& uploader, uint64_t bytes);

// An empty tensor, cut into shards that fit one binding. tile: in tiles if its shape allows it.
Result<Tensor> create_tensor(Device& device, MemoryPool& memory, DType dtype, uint32_t rows, uint32_t cols, bool tile);

// The tensor's rows from row-major bytes as a file has them (tensor.dtype), which `read` provides in ascending pieces.
Status upload_tensor(Uploader& uploader, Tensor& tensor, const Uploader::Fill& read);

} // namespace auspex
