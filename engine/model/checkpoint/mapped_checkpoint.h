// Tensors that lie in mapped files, as a checkpoint: found by name, read in place, their pages given back. What the
// files are and whether they are right is the business of those who open them.
#pragma once

#include "model/checkpoint/checkpoint.h"

#include <utility>

namespace auspex {

// A tensor and where it lies. paired_rows: its heads of this many rows rotate adjacent pairs in the file (0: the rows
// are in order).
struct MappedTensor {
    TensorInfo info;
    std::span<const std::byte> bytes;
    uint32_t paired_rows = 0;
};

inline constexpr size_t kMaxShards = 1024; // files of one checkpoint

class MappedCheckpoint : public Checkpoint {
  public:
    // Tensors in any order, each name once.
    MappedCheckpoint(std::string name, LlamaConfig config, std::vector<MappedTensor> tensors);

    const LlamaConfig& config() const override { return config_; }
    const std::string& name() const override { return name_; }
    const TensorInfo* find(std::string_view tensor_name) const override;
    Status read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const override;
    void release(const TensorInfo& tensor) const override;

  private:
    const MappedTensor* find_mapped(std::string_view name) const;

    std::string name_;
    LlamaConfig config_;
    std::vector<MappedTensor> tensors_; // sorted by name
};

// With the files that its tensors lie in.
template <typename File> class FilesCheckpoint : public MappedCheckpoint {
  public:
    FilesCheckpoint(std::string name, LlamaConfig config, std::vector<File> files, std::vector<MappedTensor> tensors)
        : MappedCheckpoint(std::move(name), std::move(config), std::move(tensors)), files_(std::move(files)) {}

  private:
    std::vector<File> files_;
};

} // namespace auspex
