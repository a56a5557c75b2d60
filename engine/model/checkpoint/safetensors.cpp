// The header goes through a strict event parser (no tree, no recursion), so memory stays in proportion to the file and
// the first deviation ends the reading. All arithmetic on its numbers is checked.
#include "model/checkpoint/safetensors.h"

#include "base/catching.h"
#include "base/checked.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>

namespace auspex {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxHeaderBytes = 100'000'000; // the reference reader's limit
constexpr size_t kMaxEntries = 65536;
constexpr size_t kMaxDims = 8;
constexpr uint64_t kLengthBytes = 8; // little-endian header length in front of the header

struct TypeName {
    std::string_view name;
    uint32_t bits;
    std::optional<DType> dtype;
};
constexpr TypeName kTypeNames[] = {
    {"BF16", 16, DType::bf16}, {"F16", 16, DType::f16}, {"F32", 32, DType::f32}, {"F64", 64, {}},    {"I64", 64, {}},
    {"I32", 32, {}},           {"I16", 16, {}},         {"I8", 8, {}},           {"U64", 64, {}},    {"U32", 32, {}},
    {"U16", 16, {}},           {"U8", 8, {}},           {"BOOL", 8, {}},         {"F8_E4M3", 8, {}}, {"F8_E5M2", 8, {}},
    {"F8_E8M0", 8, {}},        {"F6_E2M3", 6, {}},      {"F6_E3M2", 6, {}},      {"F4", 4, {}},      {"C64", 64, {}},
};

const TypeName* type_named(std::string_view name) {
    for (const TypeName& type : kTypeNames)
        if (type.name == name) return &type;
    return nullptr;
}

// Accepts {"name": {"dtype": text, "shape": [n…], "data_offsets": [begin, end]}, …, "__metadata__": {text: text}}.
// Every event returns false to stop; `problem` then says what was found and expected.
class HeaderEvents : public nlohmann::json_sax<json> {
  public:
    std::vector<SafetensorsEntry> entries;
    std::string problem;

    bool null() override { return unexpected("null"); }
    bool boolean(bool) override { return unexpected("true or false"); }
    bool number_integer(int64_t value) override { return unexpected("the number " + std::to_string(value)); }
    bool number_float(double, const std::string& text) override { return unexpected("the number " + in_quotes(text)); }
    bool binary(binary_t&) override { return unexpected("binary data"); }

    bool number_unsigned(uint64_t value) override {
        if (place_ == Place::shape) {
            if (entries.back().shape.size() == kMaxDims)
                return stop("more than " + std::to_string(kMaxDims) + " dimensions", "at most that many");
            entries.back().shape.push_back(value);
            return true;
        }
        if (place_ == Place::offsets) {
            if (n_offsets_ == 2) return stop("more than two data_offsets", "begin and end");
            (n_offsets_++ == 0 ? entries.back().begin : entries.back().end) = value;
            return true;
        }
        return unexpected("the number " + std::to_string(value));
    }

    bool string(std::string& value) override {
        if (place_ == Place::metadata) return true;
        if (place_ != Place::dtype) return unexpected("the text " + in_quotes(value));
        entries.back().type = std::move(value);
        place_ = Place::entry;
        return true;
    }

    bool start_object(size_t) override {
        switch (place_) {
        case Place::start:
            place_ = Place::top;
            return true;
        case Place::top:
            place_ = in_metadata_ ? Place::metadata : Place::entry;
            return true;
        default:
            return unexpected("an object");
        }
    }

    bool key(std::string& name) override {
        if (place_ == Place::metadata) return true;
        if (place_ == Place::entry) return entry_key(name);
        in_metadata_ = name == "__metadata__";
        if (in_metadata_) {
            if (metadata_seen_) return stop("__metadata__ twice", "once");
            metadata_seen_ = true;
            return true;
        }
        if (entries.size() == kMaxEntries)
            return stop("more than " + std::to_string(kMaxEntries) + " tensors", "at most that many");
        entries.emplace_back().name = std::move(name);
        fields_seen_ = 0;
        n_offsets_ = 0;
        return true;
    }

    bool end_object() override {
        if (place_ == Place::entry && fields_seen_ != 7)
            return stop("a field missing", "dtype, shape and data_offsets");
        place_ = place_ == Place::top ? Place::end : Place::top;
        return true;
    }

    bool start_array(size_t) override {
        if (place_ == Place::shape_next) {
            place_ = Place::shape;
        } else if (place_ == Place::offsets_next) {
            place_ = Place::offsets;
        } else {
            return unexpected("a list");
        }
        return true;
    }

    bool end_array() override {
        if (place_ == Place::offsets && n_offsets_ != 2)
            return stop(std::to_string(n_offsets_) + " data_offsets", "begin and end");
        place_ = Place::entry;
        return true;
    }

    bool parse_error(size_t position, const std::string&, const json::exception&) override {
        problem = "text at byte " + std::to_string(kLengthBytes + position) +
                  " of the header that is not JSON, expected "
                  "the header of a safetensors file";
        return false;
    }

  private:
    enum class Place { start, top, metadata, entry, dtype, shape_next, shape, offsets_next, offsets, end };

    bool stop(const std::string& found, const std::string& expected) {
        const bool at_tensor = !entries.empty() && !in_metadata_ && place_ != Place::start;
        problem = found + (at_tensor ? " at tensor " + in_quotes(entries.back().name) : "") + ", expected " + expected;
        return false;
    }

    bool unexpected(const std::string& found) {
        switch (place_) {
        case Place::start:
            return stop(found, "a JSON object");
        case Place::top:
            return stop(found, in_metadata_ ? "an object of texts" : "an object with dtype, shape and data_offsets");
        case Place::metadata:
            return stop(found + " in __metadata__", "texts only");
        case Place::dtype:
            return stop(found + " as dtype", "a type name such as \"BF16\"");
        case Place::shape_next:
        case Place::shape:
            return stop(found + " in shape", "integers of at least 0");
        case Place::offsets_next:
        case Place::offsets:
            return stop(found + " in data_offsets", "two integers of at least 0");
        default:
            return stop(found, "the header's own structure");
        }
    }

    bool entry_key(const std::string& name) {
        uint32_t field = 0;
        if (name == "dtype") {
            field = 1;
            place_ = Place::dtype;
        } else if (name == "shape") {
            field = 2;
            place_ = Place::shape_next;
        } else if (name == "data_offsets") {
            field = 4;
            place_ = Place::offsets_next;
        } else {
            return stop("the field " + in_quotes(name), "dtype, shape and data_offsets");
        }
        if (fields_seen_ & field) return stop("the field " + name + " twice", "once");
        fields_seen_ |= field;
        return true;
    }

    Place place_ = Place::start;
    bool in_metadata_ = false;
    bool metadata_seen_ = false;
    uint32_t fields_seen_ = 0; // 1 dtype, 2 shape, 4 data_offsets
    uint32_t n_offsets_ = 0;
};

Status damaged(const std::string& path, const std::string& found, const std::string& expected) {
    return {Code::bad_file, path + ": found " + found + ", expected " + expected +
                                "; the file is damaged or incomplete, fetch it again"};
}

std::string range_text(const SafetensorsEntry& entry) {
    return "[" + std::to_string(entry.begin) + ", " + std::to_string(entry.end) + ")";
}

// Type, shape and range of one entry agree, and the range lies inside `data_bytes`. Offsets still count from the data.
Status check_entry(SafetensorsEntry& entry, uint64_t data_bytes, const std::string& path) {
    const std::string name = in_quotes(entry.name);
    const TypeName* type = type_named(entry.type);
    if (!type)
        return {Code::unsupported, path + ": found type " + in_quotes(entry.type) + " at tensor " + name +
                                       ", expected one of safetensors' types; convert the file to BF16"};
    entry.dtype = type->dtype;
    if (entry.begin > entry.end || entry.end > data_bytes)
        return damaged(path, "data_offsets " + range_text(entry) + " at tensor " + name,
                       "begin <= end <= " + std::to_string(data_bytes) + " (the bytes after the header)");
    std::optional<uint64_t> bits = type->bits;
    for (uint64_t dim : entry.shape)
        bits = bits ? checked_mul(*bits, dim) : bits;
    if (!bits || *bits % 8 != 0 || *bits / 8 != entry.end - entry.begin)
        return damaged(path, std::to_string(entry.end - entry.begin) + " bytes at tensor " + name,
                       "shape times type" + (bits ? ", " + std::to_string(*bits / 8) : " below 2^61"));
    return ok_status();
}

// Every byte of the data belongs to exactly one tensor, so that nothing is read twice and nothing hides in between.
Status check_cover(const std::vector<SafetensorsEntry>& entries, uint64_t data_bytes, const std::string& path) {
    std::vector<const SafetensorsEntry*> order;
    for (const SafetensorsEntry& entry : entries)
        order.push_back(&entry);
    std::sort(order.begin(), order.end(), [](const SafetensorsEntry* a, const SafetensorsEntry* b) {
        return a->begin != b->begin ? a->begin < b->begin : a->end < b->end;
    });
    uint64_t covered = 0;
    for (const SafetensorsEntry* entry : order) {
        if (entry->begin != covered)
            return damaged(
                path, "data_offsets " + range_text(*entry) + " at tensor " + in_quotes(entry->name),
                "begin " + std::to_string(covered) +
                    (entry->begin < covered ? ": it overlaps another tensor" : ": there is a hole before it"));
        covered = entry->end;
    }
    if (covered != data_bytes)
        return damaged(path, std::to_string(data_bytes) + " bytes of data",
                       std::to_string(covered) + ", the end of the last tensor");
    return ok_status();
}

Result<std::span<const std::byte>> find_header(std::span<const std::byte> file, const std::string& path) {
    constexpr std::string_view lfs = "version https://git-lfs";
    if (file.size() >= lfs.size() && std::memcmp(file.data(), lfs.data(), lfs.size()) == 0)
        return Status(Code::bad_file, path + ": found a Git LFS pointer, expected the weights; run git lfs pull");
    if (file.size() < kLengthBytes) return damaged(path, std::to_string(file.size()) + " bytes", "a safetensors file");
    uint64_t header_bytes = 0;
    for (size_t i = kLengthBytes; i-- > 0;)
        header_bytes = header_bytes << 8 | std::to_integer<uint64_t>(file[i]);
    const uint64_t most = std::min<uint64_t>(kMaxHeaderBytes, file.size() - kLengthBytes);
    if (header_bytes > most)
        return damaged(path, "a header length of " + std::to_string(header_bytes),
                       "at most " + std::to_string(most) + " in a file of " + std::to_string(file.size()) + " bytes");
    const auto header = file.subspan(kLengthBytes, header_bytes);
    if (header.empty() || header[0] != std::byte{'{'}) return damaged(path, "no { after the length", "a JSON header");
    if (std::find(header.begin(), header.end(), std::byte{0}) != header.end()) // would end the parser's input early
        return damaged(path, "a zero byte in the header", "JSON");
    return header;
}

} // namespace

Result<std::vector<SafetensorsEntry>> parse_safetensors(std::span<const std::byte> file, const std::string& path) {
    return catching(path, "for its header", [&]() -> Result<std::vector<SafetensorsEntry>> {
        AUSPEX_TRY_ASSIGN(header, find_header(file, path));
        const auto* text = reinterpret_cast<const char*>(header.data());
        HeaderEvents events;
        if (!json::sax_parse(text, text + header.size(), &events))
            return Status(Code::bad_file, path + ": found " + events.problem + "; fetch or convert the file again");

        std::vector<SafetensorsEntry> entries = std::move(events.entries);
        std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
        for (size_t i = 1; i < entries.size(); ++i)
            if (entries[i].name == entries[i - 1].name)
                return damaged(path, "the tensor " + in_quotes(entries[i].name) + " twice", "once");
        const uint64_t data_begin = kLengthBytes + header.size();
        const uint64_t data_bytes = file.size() - data_begin;
        for (SafetensorsEntry& entry : entries)
            AUSPEX_TRY(check_entry(entry, data_bytes, path));
        AUSPEX_TRY(check_cover(entries, data_bytes, path));
        for (SafetensorsEntry& entry : entries) {
            entry.begin += data_begin;
            entry.end += data_begin;
        }
        return entries;
    });
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
    AUSPEX_TRY_ASSIGN(file, MappedFile::open(path));
    AUSPEX_TRY_ASSIGN(entries, parse_safetensors(file.bytes(), path));
    return SafetensorsFile(std::move(file), std::move(entries));
}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
    const auto it =
        std::lower_bound(entries_.begin(), entries_.end(), name,
                         [](const SafetensorsEntry& entry, std::string_view key) { return entry.name < key; });
    return it == entries_.end() || it->name != name ? nullptr : &*it;
}

} // namespace auspex
