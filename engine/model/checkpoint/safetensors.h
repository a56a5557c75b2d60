// Reads the header of one safetensors file and checks all that it claims before any weight is touched.
// Which tensors a model needs, and their shapes, is the business of others.
#pragma once

#include "base/platform.h"
#include "base/status.h"
#include "tensor/dtype.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace auspex {

struct SafetensorsEntry {
    std::string name;
    std::string type;            // as the file spells it, e.g. "BF16"
    std::optional<DType> dtype;  // set for the types that Auspex computes with: BF16, F16, F32
    std::vector<uint64_t> shape; // slowest dimension first, at most 8
    uint64_t begin = 0;          // byte offsets [begin, end) from the start of the file
    uint64_t end = 0;
};

// The entries of a file held in memory, sorted by name. Guarantees: names differ, every range lies inside the file and
// equals shape × type, and the ranges cover the data exactly (no overlap, no hole). `path` is for messages.
// Format: https://github.com/huggingface/safetensors (its reference reader sets the header limit and the cover rule).
Result<std::vector<SafetensorsEntry>> parse_safetensors(std::span<const std::byte> file, const std::string& path);

class SafetensorsFile {
  public:
    static Result<SafetensorsFile> open(const std::string& path);

    const std::vector<SafetensorsEntry>& entries() const { return entries_; }
    const SafetensorsEntry* find(std::string_view name) const; // null when absent
    std::span<const std::byte> bytes(const SafetensorsEntry& entry) const {
        return file_.bytes().subspan(entry.begin, entry.end - entry.begin);
    }

  private:
    SafetensorsFile(MappedFile file, std::vector<SafetensorsEntry> entries)
        : file_(std::move(file)), entries_(std::move(entries)) {}

    MappedFile file_;
    std::vector<SafetensorsEntry> entries_;
};

} // namespace auspex
