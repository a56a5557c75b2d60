// GGUF v3 as a container: named values and named tensors of one file, checked, read in place. What the names mean is
// the business of model/ (config, weights) and tokens/ (vocabulary, chat template); gguf_writer.h writes such files.
#pragma once

#include "base/platform.h"
#include "base/status.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace auspex {

enum class GgufType : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

// A list inside the file. Strings are found by walking (for_each_text), so a whole list is read in one pass.
struct GgufArray {
    GgufType type = GgufType::u8; // of the elements; never array
    uint64_t count = 0;
    std::span<const std::byte> bytes; // of all elements, inside the mapped file
};

struct GgufTensor {
    std::string name;            // unique, 1 to 255 bytes
    uint32_t type = 0;           // ggml's type id; which ids mean what is tensor/dtype.h's business
    std::vector<uint64_t> shape; // slowest dimension first, 1 to 4 dimensions, none zero, product fits 63 bits
    uint64_t offset = 0;         // of its first byte from the start of the file; aligned, inside the file
    uint64_t room = 0;           // bytes up to the next tensor or the file's end: shape × type may not exceed it
};

// What a file says. Views point into the bytes that were parsed, which must outlive them.
struct GgufContents {
    struct Entry {
        std::string_view key; // unique, 1 to 65535 bytes
        GgufType type = GgufType::u8;
        std::span<const std::byte> bytes; // a scalar's bytes, a string's characters, an array's elements
        GgufArray array;                  // when type is array
    };
    std::vector<Entry> entries;      // sorted by key
    std::vector<GgufTensor> tensors; // in file order
    uint64_t data_begin = 0;         // first byte of the tensor data
    uint32_t alignment = 32;

    const Entry* find(std::string_view key) const; // null when absent
    // Absent and of another type are both nullopt; integers of any width are widened, never cut; negative is nullopt.
    std::optional<uint64_t> unsigned_value(std::string_view key) const;
    bool is_minus_one(std::string_view key) const;                // an integer of any width
    std::optional<double> real_value(std::string_view key) const; // f32 and f64
    std::optional<bool> bool_value(std::string_view key) const;
    std::optional<std::string_view> text_value(std::string_view key) const;
    const GgufArray* array_value(std::string_view key, GgufType type) const; // null when absent or of other elements
    const GgufTensor* find_tensor(std::string_view name) const;              // linear; null when absent
};

// Elements of numeric arrays: nullopt beyond the end and for other element types.
std::optional<int64_t> integer_at(const GgufArray& array, uint64_t index); // a u64 above 2^63 is nullopt too
std::optional<double> real_at(const GgufArray& array, uint64_t index);     // f32 and f64

// Splits the next string off `rest`, the bytes of an array of strings that was checked; nullopt at its end.
std::optional<std::string_view> next_text(std::span<const std::byte>& rest);

// Walks the strings of an array without copying them: `each(index, text)` returns false to stop.
template <typename Each> void for_each_text(const GgufArray& array, Each each) {
    if (array.type != GgufType::string) return;
    auto rest = array.bytes;
    for (uint64_t i = 0; i < array.count; ++i) {
        const auto text = next_text(rest);
        if (!text || !each(i, *text)) return;
    }
}

// bad_file: truncated, counts beyond the file, wrong magic, unknown types, duplicate or empty keys and names, zero or
// overflowing dimensions, offsets that are not aligned, beyond the file or shared, alignment that is not a power of two
// from 8 on, booleans other than 0 and 1, more than 65536 keys or tensors, 64 MiB of text or 16 Mi list items.
// unsupported: version 1 or above 3 (2 has the layout of 3), big-endian files, lists of lists (the reference reader
// refuses them too). `path` is for messages. Time and memory are bounded by the file's size.
// Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
Result<GgufContents> parse_gguf(std::span<const std::byte> file, const std::string& path);

// A mapped file with its contents. Movable.
class GgufFile {
  public:
    static Result<GgufFile> open(const std::string& path);
    const std::string& path() const { return file_.path(); }
    std::span<const std::byte> bytes() const { return file_.bytes(); }
    const GgufContents& contents() const { return contents_; }
    // The first `size` bytes of a tensor; bad_file when the file has no room for them.
    Result<std::span<const std::byte>> tensor_bytes(const GgufTensor& tensor, uint64_t size) const;

  private:
    GgufFile(MappedFile file, GgufContents contents) : file_(std::move(file)), contents_(std::move(contents)) {}
    MappedFile file_; // a moved MappedFile keeps its address range, so views stay valid
    GgufContents contents_;
};

bool is_gguf_path(std::string_view path); // by its name: ".gguf", any case
// not_found, of a path that leads to nothing: what could be there, and where people get it.
Status no_such_model(const std::string& path);

} // namespace auspex
