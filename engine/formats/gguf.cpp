// A cursor walks the header once; every count is held against the bytes that are left before anything is reserved, and
// all arithmetic on the file's numbers is checked. Nothing recurses; duplicates are found by sorting.
#include "formats/gguf.h"

#include "base/catching.h"
#include "base/checked.h"
#include "formats/gguf_bytes.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace auspex {
namespace {

constexpr uint64_t kMaxNameBytes = 255;
constexpr uint32_t kMaxDims = 4;
// The least that one entry or tensor can occupy: length, one character, type, value; length, one character, number of
// dimensions, one dimension, type, offset.
constexpr uint64_t kMinEntryBytes = 8 + 1 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;

// What is left of the header. A read that does not fit leaves the cursor as it was and returns false.
class Cursor {
  public:
    explicit Cursor(std::span<const std::byte> file) : rest_(file), size_(file.size()) {}

    uint64_t position() const { return size_ - rest_.size(); }
    uint64_t remaining() const { return rest_.size(); }

    bool take(uint64_t n, std::span<const std::byte>& out) {
        if (n > rest_.size()) return false;
        out = rest_.first(static_cast<size_t>(n));
        rest_ = rest_.subspan(static_cast<size_t>(n));
        return true;
    }
    bool read(uint32_t& out) {
        std::span<const std::byte> bytes;
        if (!take(4, bytes)) return false;
        out = static_cast<uint32_t>(little_endian(bytes));
        return true;
    }
    bool read(uint64_t& out) {
        std::span<const std::byte> bytes;
        if (!take(8, bytes)) return false;
        out = little_endian(bytes);
        return true;
    }

  private:
    std::span<const std::byte> rest_;
    uint64_t size_;
};

// Builds messages that name the file and what was being read.
struct Reader {
    Cursor cursor;
    const std::string& path;
    std::string at = "the header"; // of what the next problem is reported

    Status bad(const std::string& found, const std::string& expected) const {
        return {Code::bad_file, path + ": found " + found + " in " + at + ", expected " + expected +
                                    "; the file is damaged or incomplete, fetch it again"};
    }
    Status truncated() const { return bad("only " + std::to_string(cursor.remaining()) + " bytes left", "more of it"); }

    // A count of things that take at least min_bytes each.
    Status check_count(const std::string& what, uint64_t count, uint64_t min_bytes, uint64_t max_count) const {
        const uint64_t most = std::min(max_count, cursor.remaining() / min_bytes);
        if (count > most)
            return bad(std::to_string(count) + " " + what,
                       "at most " + std::to_string(most) +
                           (most < max_count ? " in " + std::to_string(cursor.remaining()) + " bytes" : ""));
        return ok_status();
    }

    Status read_text(const char* what, uint64_t max_bytes, std::string_view& out) {
        uint64_t length = 0;
        if (!cursor.read(length)) return truncated();
        const uint64_t most = std::min(max_bytes, cursor.remaining());
        std::span<const std::byte> bytes;
        if (length > most || !cursor.take(length, bytes))
            return bad(std::string(what) + " of " + std::to_string(length) + " bytes",
                       "at most " + std::to_string(most));
        out = as_text(bytes);
        return ok_status();
    }
};

// Steps over one scalar or string; `out` gets its bytes (a string's without its length).
Status read_scalar(Reader& reader, GgufType type, std::span<const std::byte>& out) {
    if (type == GgufType::string) {
        std::string_view text;
        AUSPEX_TRY(reader.read_text("text", kGgufMaxTextBytes, text));
        out = std::as_bytes(std::span(text.data(), text.size()));
        return ok_status();
    }
    if (!reader.cursor.take(gguf_scalar_bytes(type), out)) return reader.truncated();
    if (type == GgufType::boolean && std::to_integer<uint32_t>(out[0]) > 1)
        return reader.bad("the boolean " + std::to_string(std::to_integer<uint32_t>(out[0])), "0 or 1");
    return ok_status();
}

Status read_array(Reader& reader, std::span<const std::byte> file, GgufArray& array) {
    uint32_t type_id = 0;
    if (!reader.cursor.read(type_id) || !reader.cursor.read(array.count)) return reader.truncated();
    array.type = static_cast<GgufType>(type_id);
    if (array.type == GgufType::array)
        return {Code::unsupported, reader.path + ": found a list of lists in " + reader.at +
                                       ", expected a list of numbers or texts; convert the model again"};
    const uint64_t item_bytes = array.type == GgufType::string ? 8 : gguf_scalar_bytes(array.type);
    if (item_bytes == 0) return reader.bad("a list of the unknown type " + std::to_string(type_id), "a type below 13");
    AUSPEX_TRY(reader.check_count("list items", array.count, item_bytes, kGgufMaxArrayItems));

    const uint64_t begin = reader.cursor.position();
    if (array.type == GgufType::string || array.type == GgufType::boolean) { // the elements themselves may be wrong
        std::span<const std::byte> item;
        for (uint64_t i = 0; i < array.count; ++i)
            AUSPEX_TRY(read_scalar(reader, array.type, item));
    } else {
        std::span<const std::byte> items;
        if (!reader.cursor.take(array.count * item_bytes, items)) return reader.truncated();
    }
    array.bytes = file.subspan(begin, reader.cursor.position() - begin);
    return ok_status();
}

Status read_entry(Reader& reader, std::span<const std::byte> file, uint64_t index, GgufContents::Entry& entry) {
    reader.at = "key number " + std::to_string(index);
    AUSPEX_TRY(reader.read_text("a name", kGgufMaxKeyBytes, entry.key));
    if (entry.key.empty()) return reader.bad("an empty name", "at least one character");
    reader.at = "the key " + in_quotes(entry.key);
    uint32_t type_id = 0;
    if (!reader.cursor.read(type_id)) return reader.truncated();
    entry.type = static_cast<GgufType>(type_id);
    if (entry.type == GgufType::array) {
        AUSPEX_TRY(read_array(reader, file, entry.array));
        entry.bytes = entry.array.bytes;
        return ok_status();
    }
    if (type_id > static_cast<uint32_t>(GgufType::f64))
        return reader.bad("the unknown type " + std::to_string(type_id), "a type below 13");
    return read_scalar(reader, entry.type, entry.bytes);
}

// The offset still counts from the tensor data.
Status read_tensor(Reader& reader, uint64_t index, GgufTensor& tensor) {
    reader.at = "tensor number " + std::to_string(index);
    std::string_view name;
    AUSPEX_TRY(reader.read_text("a name", kMaxNameBytes, name));
    if (name.empty()) return reader.bad("an empty name", "at least one character");
    tensor.name = name;
    reader.at = "the tensor " + in_quotes(name);
    uint32_t n_dims = 0;
    if (!reader.cursor.read(n_dims)) return reader.truncated();
    if (n_dims == 0 || n_dims > kMaxDims)
        return reader.bad(std::to_string(n_dims) + " dimensions", "1 to " + std::to_string(kMaxDims));
    tensor.shape.resize(n_dims);
    std::optional<uint64_t> elements = 1;
    for (uint64_t& dim : tensor.shape) {
        if (!reader.cursor.read(dim)) return reader.truncated();
        if (dim == 0) return reader.bad("a dimension of 0", "at least 1");
        elements = elements ? checked_mul(*elements, dim) : elements;
    }
    if (!elements || *elements >> 63 != 0)
        return reader.bad("dimensions with a product above 2^63", "a smaller tensor");
    std::reverse(tensor.shape.begin(), tensor.shape.end()); // the file has the fastest first
    if (!reader.cursor.read(tensor.type) || !reader.cursor.read(tensor.offset)) return reader.truncated();
    return ok_status();
}

Status sort_entries(Reader& reader, std::vector<GgufContents::Entry>& entries) {
    std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
    const auto twice =
        std::adjacent_find(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.key == b.key; });
    reader.at = "the header";
    if (twice != entries.end()) return reader.bad("the key " + in_quotes(twice->key) + " twice", "once");
    return ok_status();
}

Status find_data(Reader& reader, uint64_t file_bytes, GgufContents& contents) {
    constexpr std::string_view key = "general.alignment";
    if (const GgufContents::Entry* entry = contents.find(key)) {
        reader.at = "the key " + in_quotes(key);
        if (entry->type != GgufType::u32)
            return reader.bad("type " + std::to_string(static_cast<uint32_t>(entry->type)), "type 4 (u32)");
        contents.alignment = static_cast<uint32_t>(little_endian(entry->bytes));
        if (!std::has_single_bit(contents.alignment) || contents.alignment < 8)
            return reader.bad(std::to_string(contents.alignment), "a power of two, at least 8");
    }
    contents.data_begin = round_up<uint64_t>(reader.cursor.position(), contents.alignment);
    reader.at = "the header";
    if (contents.tensors.empty()) // such a file may end without the padding
        contents.data_begin = std::min(contents.data_begin, file_bytes);
    else if (contents.data_begin > file_bytes)
        return reader.bad("no tensor data after it", "data from byte " + std::to_string(contents.data_begin));
    return ok_status();
}

// Names differ; places are aligned, inside the file, and differ.
Status check_tensors(Reader& reader, uint64_t file_bytes, GgufContents& contents) {
    auto& tensors = contents.tensors;
    for (GgufTensor& tensor : tensors) {
        reader.at = "the tensor " + in_quotes(tensor.name);
        const auto offset = checked_add(contents.data_begin, tensor.offset);
        if (!offset || *offset >= file_bytes || tensor.offset % contents.alignment != 0)
            return reader.bad("the offset " + std::to_string(tensor.offset),
                              "a multiple of " + std::to_string(contents.alignment) + " below " +
                                  std::to_string(file_bytes - contents.data_begin));
        tensor.offset = *offset;
    }
    reader.at = "the header";
    std::vector<uint32_t> order(tensors.size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return tensors[a].name < tensors[b].name; });
    for (size_t i = 1; i < order.size(); ++i)
        if (tensors[order[i]].name == tensors[order[i - 1]].name)
            return reader.bad("the tensor " + in_quotes(tensors[order[i]].name) + " twice", "once");
    std::sort(order.begin(), order.end(),
              [&](uint32_t a, uint32_t b) { return tensors[a].offset < tensors[b].offset; });
    for (size_t i = 0; i < order.size(); ++i) {
        GgufTensor& tensor = tensors[order[i]];
        tensor.room = (i + 1 < order.size() ? tensors[order[i + 1]].offset : file_bytes) - tensor.offset;
        if (tensor.room == 0)
            return reader.bad("the tensors " + in_quotes(tensor.name) + " and " +
                                  in_quotes(tensors[order[i + 1]].name) + " at the same place",
                              "one place each");
    }
    return ok_status();
}

Status read_start(Reader& reader, std::span<const std::byte> file, uint64_t& n_tensors, uint64_t& n_entries) {
    if (as_text(file).starts_with("version https://git-lfs"))
        return {Code::bad_file, reader.path + ": found a Git LFS pointer, expected the model; run git lfs pull"};
    std::span<const std::byte> magic;
    if (!reader.cursor.take(4, magic) || as_text(magic) != "GGUF")
        return {Code::bad_file, reader.path + ": found " +
                                    in_quotes(as_text(file.first(std::min<size_t>(file.size(), 4)))) +
                                    " at its start, expected \"GGUF\"; name a GGUF file"};
    uint32_t version = 0;
    if (!reader.cursor.read(version)) return reader.truncated();
    if (version != 0 && (version & 0xffff) == 0)
        return {Code::unsupported, reader.path + ": found a big-endian GGUF file, expected a little-endian one; "
                                                 "convert it with gguf_convert_endian.py"};
    if (version != 2 && version != 3)
        return {Code::unsupported, reader.path + ": found GGUF version " + std::to_string(version) +
                                       ", expected 2 or 3; convert the model again"};
    if (!reader.cursor.read(n_tensors) || !reader.cursor.read(n_entries)) return reader.truncated();
    AUSPEX_TRY(reader.check_count("keys", n_entries, kMinEntryBytes, kGgufMaxEntries));
    return reader.check_count("tensors", n_tensors, kMinTensorBytes, kGgufMaxEntries);
}

} // namespace

Result<GgufContents> parse_gguf(std::span<const std::byte> file, const std::string& path) {
    return catching(path, "for its header", [&]() -> Result<GgufContents> {
        Reader reader{.cursor = Cursor(file), .path = path};
        uint64_t n_tensors = 0, n_entries = 0;
        AUSPEX_TRY(read_start(reader, file, n_tensors, n_entries));
        GgufContents contents;
        contents.entries.resize(n_entries);
        for (uint64_t i = 0; i < n_entries; ++i)
            AUSPEX_TRY(read_entry(reader, file, i, contents.entries[i]));
        reader.at = "the header";
        AUSPEX_TRY(reader.check_count("tensors", n_tensors, kMinTensorBytes, kGgufMaxEntries));
        contents.tensors.resize(n_tensors);
        for (uint64_t i = 0; i < n_tensors; ++i)
            AUSPEX_TRY(read_tensor(reader, i, contents.tensors[i]));
        AUSPEX_TRY(sort_entries(reader, contents.entries));
        AUSPEX_TRY(find_data(reader, file.size(), contents));
        AUSPEX_TRY(check_tensors(reader, file.size(), contents));
        return contents;
    });
}

Result<GgufFile> GgufFile::open(const std::string& path) {
    AUSPEX_TRY_ASSIGN(file, MappedFile::open(path));
    AUSPEX_TRY_ASSIGN(contents, parse_gguf(file.bytes(), path));
    return GgufFile(std::move(file), std::move(contents));
}

Result<std::span<const std::byte>> GgufFile::tensor_bytes(const GgufTensor& tensor, uint64_t size) const {
    if (size > tensor.room)
        return Status(Code::bad_file, path() + ": found room for " + std::to_string(tensor.room) +
                                          " bytes at the tensor " + in_quotes(tensor.name) + ", expected " +
                                          std::to_string(size) + "; the file is damaged or incomplete, fetch it again");
    return bytes().subspan(tensor.offset, size);
}

bool is_gguf_path(std::string_view path) {
    constexpr std::string_view ending = ".gguf";
    if (path.size() < ending.size()) return false;
    return std::equal(ending.begin(), ending.end(), path.end() - ending.size(),
                      [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b - 'A' + 'a' : b); });
}

Status no_such_model(const std::string& path) {
    return {Code::not_found, path + ": found no such file or folder, expected a GGUF file or a Hugging Face folder; check "
                                    "the path, or download a model, from huggingface.co for example: one .gguf file, or "
                                    "all files of a repository into a folder"};
}

} // namespace auspex
