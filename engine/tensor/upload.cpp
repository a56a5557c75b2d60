// Staged upload in pieces of the staging buffer's size.
#include "tensor/upload.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace auspex {

Result<std::unique_ptr<Uploader>> Uploader::create(Device& device, MemoryPool& memory) {
    std::unique_ptr<Uploader> uploader(new Uploader(device));
    AUSPEX_TRY_SET(uploader->staging_, memory.create(kStagingBytes, MemoryUse::upload));
    uploader->rehearse_ = memory.rehearses();
    VkFenceCreateInfo info = {VK_STRUCTURE_TYPE_FENCE_CREATE_INFO, nullptr, 0};
    AUSPEX_VK_MAKE(device, uploader->fence_, CreateFence(device.handle, &info, nullptr, &uploader->fence_));
    return uploader;
}

Uploader::~Uploader() {
    if (fence_) device_->vk.DestroyFence(device_->handle, fence_, nullptr);
}

Status Uploader::run_and_wait(const char* label, const std::function<void(Recording&)>& record) {
    if (rehearse_) return ok_status();
    AUSPEX_TRY_ASSIGN(recording, Recording::create(*device_, 0));
    recording->begin_segment(label);
    record(*recording);
    recording->end_segment();
    AUSPEX_TRY(recording->finish());
    return submit_and_wait(*recording);
}

Status Uploader::submit_and_wait(const Recording& recording) {
    VkCommandBuffer buffer = recording.segment(0);
    AUSPEX_TRY(device_->submit(&buffer, 1, fence_));
    AUSPEX_TRY(device_->wait_until_done(fence_)); // the recording must not go while it may be executing
    return device_->check(device_->vk.ResetFences(device_->handle, 1, &fence_), "vkResetFences");
}

Status Uploader::write_and_wait(BufferView view, const Fill& fill) {
    for (uint64_t offset = 0; offset < view.size; offset += kStagingBytes) {
        uint64_t bytes = std::min(kStagingBytes, view.size - offset);
        if (!rehearse_) AUSPEX_TRY(fill(offset, std::span(staging_.mapped(), bytes)));
        AUSPEX_TRY(run_and_wait("upload", [&](Recording& cmd) { cmd.copy(staging_.view(0, bytes), view.sub(offset, bytes)); }));
        uploaded_bytes_ += bytes;
        if (progress) progress(uploaded_bytes_);
    }
    return ok_status();
}

Status Uploader::write_and_wait(const Buffer& buffer, std::span<const std::byte> data) {
    return write_and_wait(buffer.view(0, data.size()), [&](uint64_t offset, std::span<std::byte> out) {
        std::memcpy(out.data(), data.data() + offset, out.size());
        return ok_status();
    });
}

Status Uploader::zero_and_wait(BufferView view) {
    return run_and_wait("upload", [&](Recording& cmd) { cmd.fill(view, 0); });
}

Status Uploader::make_and_wait(uint64_t bytes, const std::function<void(Recording&)>& record) {
    AUSPEX_TRY(run_and_wait("upload", record));
    uploaded_bytes_ += bytes;
    if (progress) progress(uploaded_bytes_);
    return ok_status();
}

Result<Buffer> create_zeroed(MemoryPool& memory, Uploader& uploader, uint64_t bytes) {
    AUSPEX_TRY_ASSIGN(made, memory.create(bytes, MemoryUse::device));
    AUSPEX_TRY(uploader.zero_and_wait(made.view()));
    return made;
}

Result<Tensor> create_tensor(Device& device, MemoryPool& memory, DType dtype, uint32_t rows, uint32_t cols, bool tile) {
    Tensor tensor;
    tensor.dtype = dtype;
    tensor.rows = rows;
    tensor.cols = cols;
    tensor.padded_cols = padded_width(cols);
    const uint64_t row_bytes = tensor.row_bytes();
    const uint64_t limit = std::min(device.caps.max_storage_buffer_range, device.caps.max_allocation_bytes);
    tensor.tiled = tile && fits_tiles(dtype, rows, cols) && kRowsPerTile * row_bytes <= std::min(limit, Uploader::kStagingBytes);
    uint64_t rows_per_shard = std::min<uint64_t>(limit / row_bytes, rows);
    const uint32_t together = tensor.tiled ? kRowsPerTile : 2; // pairs of rows that belong together stay so
    if (rows_per_shard > 1 && rows_per_shard < rows) rows_per_shard -= rows_per_shard % together;
    if (rows_per_shard == 0)
        return Status(Code::unsupported, "a weight row of " + std::to_string(row_bytes) + " bytes exceeds the device's storage buffer range of " +
                                             std::to_string(limit) + " bytes");
    for (uint32_t first = 0; first < rows; first += static_cast<uint32_t>(rows_per_shard)) {
        uint32_t n = static_cast<uint32_t>(std::min<uint64_t>(rows_per_shard, rows - first));
        AUSPEX_TRY_ASSIGN(buffer, memory.create(n * row_bytes, MemoryUse::device));
        tensor.shards.push_back({std::move(buffer), first, n});
    }
    return tensor;
}

Status upload_tensor(Uploader& uploader, Tensor& tensor, const Uploader::Fill& read) {
    const uint64_t file_row = file_row_bytes(tensor.dtype, tensor.cols), row_bytes = tensor.row_bytes();
    const bool as_it_lies = !is_quantized(tensor.dtype) && !tensor.tiled && file_row == row_bytes;
    std::vector<std::byte> rows; // of the file, when they lie otherwise on the device
    for (Shard& shard : tensor.shards) {
        if (as_it_lies) {
            AUSPEX_TRY(uploader.write_and_wait(shard.buffer.view(0, shard.n_rows * row_bytes), [&](uint64_t offset, std::span<std::byte> out) {
                return read(shard.first_row * file_row + offset, out);
            }));
            continue;
        }
        auto piece = static_cast<uint32_t>(Uploader::kStagingBytes / row_bytes);
        if (tensor.tiled) piece -= piece % kRowsPerTile;
        if (piece == 0) return {Code::unsupported, "a weight row of " + std::to_string(row_bytes) + " bytes exceeds the staging buffer"};
        for (uint32_t row = 0; row < shard.n_rows; row += piece) {
            const uint32_t n = std::min(piece, shard.n_rows - row);
            if (!uploader.rehearses()) {
                rows.resize(n * file_row);
                AUSPEX_TRY(read((shard.first_row + row) * file_row, rows));
            }
            AUSPEX_TRY(uploader.write_and_wait(shard.buffer.view(row * row_bytes, n * row_bytes), [&](uint64_t, std::span<std::byte> out) { // one piece
                pack_rows(tensor.dtype, tensor.cols, tensor.tiled, rows, out);
                return ok_status();
            }));
        }
    }
    return ok_status();
}

} // namespace auspex
