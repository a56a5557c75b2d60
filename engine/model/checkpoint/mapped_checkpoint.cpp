// Reading out of mapped files: ranges held against the tensor's place, rows of paired heads put in order.
#include "model/checkpoint/mapped_checkpoint.h"

#include "base/platform.h"

#include <algorithm>
#include <cstring>

namespace auspex {
namespace {

// Row (head, half a, i) of a model that rotates halves is row (head, i, a) of the file.
// Source: llama.cpp's converter, LlamaModel.permute.
void read_paired(const MappedTensor& tensor, uint64_t offset, std::span<std::byte> out) {
    const uint64_t row_bytes = tensor.bytes.size() / tensor.info.shape[0];
    const uint64_t head_rows = tensor.paired_rows, half = head_rows / 2;
    while (!out.empty()) {
        const uint64_t row = offset / row_bytes, skip = offset % row_bytes, in_head = row % head_rows;
        const uint64_t file_row = row - in_head + 2 * (in_head % half) + in_head / half;
        const uint64_t n = std::min<uint64_t>(out.size(), row_bytes - skip);
        std::memcpy(out.data(), tensor.bytes.data() + file_row * row_bytes + skip, n);
        out = out.subspan(n);
        offset += n;
    }
}

} // namespace

MappedCheckpoint::MappedCheckpoint(std::string name, LlamaConfig config, std::vector<MappedTensor> tensors)
    : name_(std::move(name)), config_(std::move(config)), tensors_(std::move(tensors)) {
    std::sort(tensors_.begin(), tensors_.end(),
              [](const MappedTensor& a, const MappedTensor& b) { return a.info.name < b.info.name; });
}

const MappedTensor* MappedCheckpoint::find_mapped(std::string_view name) const {
    const auto it = std::lower_bound(tensors_.begin(), tensors_.end(), name,
                                     [](const MappedTensor& one, std::string_view key) { return one.info.name < key; });
    return it == tensors_.end() || it->info.name != name ? nullptr : &*it;
}

const TensorInfo* MappedCheckpoint::find(std::string_view tensor_name) const {
    const MappedTensor* mapped = find_mapped(tensor_name);
    return mapped ? &mapped->info : nullptr;
}

Status MappedCheckpoint::read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const {
    const MappedTensor* mapped = find_mapped(tensor.name);
    if (!mapped || offset > mapped->bytes.size() || out.size() > mapped->bytes.size() - offset)
        return {Code::internal, name_ + ": read outside of tensor " + in_quotes(tensor.name)};
    if (mapped->paired_rows != 0) {
        read_paired(*mapped, offset, out);
    } else if (!out.empty()) {
        std::memcpy(out.data(), mapped->bytes.data() + offset, out.size());
    }
    return ok_status();
}

void MappedCheckpoint::release(const TensorInfo& tensor) const {
    if (const MappedTensor* mapped = find_mapped(tensor.name)) release_pages(mapped->bytes);
}

} // namespace auspex
