// Writes one GGUF v3 file: declare values and tensors, then begin(), then the bytes of each tensor in order, then
// finish(). Until finish() succeeds the file has a temporary name beside its own, and it is removed when the writer
// goes. A link is written through; what is no file is refused.
#pragma once

#include "base/status.h"
#include "formats/gguf.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace auspex {

class GgufWriter {
  public:
    explicit GgufWriter(std::string path); // UTF-8; an existing file is replaced at finish()
    ~GgufWriter();
    GgufWriter(const GgufWriter&) = delete;
    GgufWriter& operator=(const GgufWriter&) = delete;

    // ---- before begin(): values, in the order in which they will stand in the file --------------------------------
    // "general.alignment" is left out: the data is aligned to 32, the format's default.
    void set_u32(std::string_view key, uint32_t value);
    void set_u64(std::string_view key, uint64_t value);
    void set_f32(std::string_view key, float value);
    void set_bool(std::string_view key, bool value);
    void set_text(std::string_view key, std::string_view value);
    void set_texts(std::string_view key, std::span<const std::string> values);
    void set_f32s(std::string_view key, std::span<const float> values);
    void set_i32s(std::string_view key, std::span<const int32_t> values);
    void set_u32s(std::string_view key, std::span<const uint32_t> values);
    void copy(const GgufContents::Entry& entry); // of another file, as it is

    // `type` is ggml's id, the shape has the slowest dimension first, `bytes` is the size that write() will provide.
    void add_tensor(std::string_view name, uint32_t type, std::span<const uint64_t> shape, uint64_t bytes);

    // Checks what was declared and writes the header. invalid_argument: names empty, too long or twice; shapes, sizes
    // or counts that the reader would refuse. io, with the file's name: everything the system says.
    Status begin();

    // The next bytes of the current tensor; the one after it becomes current when all are there. invalid_argument when
    // they are more than was declared.
    Status write(std::span<const std::byte> bytes);

    // invalid_argument when bytes are missing. Afterwards the file has its name, if `check` finds nothing wrong with the
    // whole of it, which it is given under its temporary name.
    Status finish(const std::function<Status(const std::string& path)>& check = {});

    uint64_t file_bytes() const { return header_bytes_ + data_bytes_; } // of the whole file, known after begin()

  private:
    struct TensorInfo {
        std::string name;
        uint32_t type;
        std::vector<uint64_t> shape;
        uint64_t bytes;
    };
    void put(std::string_view key, GgufType type, std::string value);
    template <typename T> void put_list(std::string_view key, GgufType type, std::span<const T> values);
    void check_limit(std::string_view key, uint64_t size, uint64_t most);
    Status check_names() const;
    Result<std::string> header();
    Status raw_write(const char* bytes, uint64_t size);
    Status fail(Code code, const std::string& text);
    void discard();

    std::string path_;
    std::filesystem::path target_, temporary_; // where its links lead
    std::vector<std::pair<std::string, std::string>> entries_; // key; type id and value as the file holds them
    std::vector<TensorInfo> tensors_;
    std::ofstream file_;
    uint64_t header_bytes_ = 0, data_bytes_ = 0; // with padding
    size_t current_ = 0;                         // tensor
    uint64_t written_ = 0;                       // bytes of it
    bool begun_ = false, finished_ = false;
    Status failure_; // sticky
};

} // namespace auspex
