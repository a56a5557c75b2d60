// The header is built in memory, the data goes straight through. Numbers are written lowest byte first.
#include "formats/gguf_writer.h"

#include "base/checked.h"
#include "base/replace_file.h"
#include "formats/gguf_bytes.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <system_error>

namespace auspex {
namespace {

constexpr uint64_t kAlignment = 32;      // the format's default, so that no key needs to say it
constexpr uint64_t kMaxTensorNameBytes = 63; // of tensors; the reference reader's limit, ours is wider

void put_u32(std::string& out, uint32_t value) {
    for (uint32_t shift = 0; shift < 32; shift += 8)
        out += static_cast<char>(value >> shift & 0xff);
}
void put_u64(std::string& out, uint64_t value) {
    put_u32(out, static_cast<uint32_t>(value & 0xffffffff));
    put_u32(out, static_cast<uint32_t>(value >> 32));
}
void put_text(std::string& out, std::string_view text) {
    put_u64(out, text.size());
    out += text;
}

std::string hex(uint64_t value) {
    std::string out;
    for (uint32_t shift = 0; shift < 64; shift += 4)
        out += "0123456789abcdef"[value >> shift & 15];
    return out;
}

} // namespace

GgufWriter::GgufWriter(std::string path) : path_(std::move(path)) {}

GgufWriter::~GgufWriter() {
    if (begun_ && !finished_) discard();
}

void GgufWriter::discard() {
    file_.close();
    std::error_code ignored;
    std::filesystem::remove(temporary_, ignored);
}

Status GgufWriter::fail(Code code, const std::string& text) {
    failure_ = Status(code, path_ + ": " + text);
    return failure_;
}

// ---- values
// -----------------------------------------------------------------------------------------------------------

void GgufWriter::put(std::string_view key, GgufType type, std::string value) {
    if (key == "general.alignment") return; // the layout is this writer's own
    std::string bytes;
    put_u32(bytes, static_cast<uint32_t>(type));
    entries_.emplace_back(std::string(key), bytes + value);
}

// What is too long is refused by begin().
void GgufWriter::check_limit(std::string_view key, uint64_t size, uint64_t most) {
    if (size > most && failure_.ok())
        (void)fail(Code::invalid_argument, "the value of " + in_quotes(key) + " has " + std::to_string(size) +
                                               " bytes or items, expected at most " + std::to_string(most));
}

void GgufWriter::set_u32(std::string_view key, uint32_t value) {
    std::string bytes;
    put_u32(bytes, value);
    put(key, GgufType::u32, bytes);
}

void GgufWriter::set_u64(std::string_view key, uint64_t value) {
    std::string bytes;
    put_u64(bytes, value);
    put(key, GgufType::u64, bytes);
}

void GgufWriter::set_f32(std::string_view key, float value) {
    std::string bytes;
    put_u32(bytes, std::bit_cast<uint32_t>(value));
    put(key, GgufType::f32, bytes);
}

void GgufWriter::set_bool(std::string_view key, bool value) {
    put(key, GgufType::boolean, std::string(1, value ? '\1' : '\0'));
}

void GgufWriter::set_text(std::string_view key, std::string_view value) {
    check_limit(key, value.size(), kGgufMaxTextBytes);
    std::string bytes;
    put_text(bytes, value);
    put(key, GgufType::string, bytes);
}

void GgufWriter::set_texts(std::string_view key, std::span<const std::string> values) {
    check_limit(key, values.size(), kGgufMaxArrayItems);
    std::string bytes;
    put_u32(bytes, static_cast<uint32_t>(GgufType::string));
    put_u64(bytes, values.size());
    for (const std::string& value : values) {
        check_limit(key, value.size(), kGgufMaxTextBytes);
        put_text(bytes, value);
    }
    put(key, GgufType::array, bytes);
}

template <typename T> void GgufWriter::put_list(std::string_view key, GgufType type, std::span<const T> values) {
    check_limit(key, values.size(), kGgufMaxArrayItems);
    std::string bytes;
    put_u32(bytes, static_cast<uint32_t>(type));
    put_u64(bytes, values.size());
    for (const T value : values)
        put_u32(bytes, std::bit_cast<uint32_t>(value));
    put(key, GgufType::array, bytes);
}

void GgufWriter::set_f32s(std::string_view key, std::span<const float> values) {
    put_list(key, GgufType::f32, values);
}
void GgufWriter::set_i32s(std::string_view key, std::span<const int32_t> values) {
    put_list(key, GgufType::i32, values);
}
void GgufWriter::set_u32s(std::string_view key, std::span<const uint32_t> values) {
    put_list(key, GgufType::u32, values);
}

void GgufWriter::copy(const GgufContents::Entry& entry) {
    std::string bytes;
    if (entry.type == GgufType::array) {
        put_u32(bytes, static_cast<uint32_t>(entry.array.type));
        put_u64(bytes, entry.array.count);
    } else if (entry.type == GgufType::string) {
        put_u64(bytes, entry.bytes.size());
    }
    put(entry.key, entry.type, bytes + std::string(as_text(entry.bytes)));
}

void GgufWriter::add_tensor(std::string_view name, uint32_t type, std::span<const uint64_t> shape, uint64_t bytes) {
    tensors_.push_back({std::string(name), type, {shape.begin(), shape.end()}, bytes});
}

// ---- the file
// ---------------------------------------------------------------------------------------------------------

Status GgufWriter::check_names() const {
    const auto check = [&](std::vector<std::string_view> names, const char* what, uint64_t most) -> Status {
        std::sort(names.begin(), names.end());
        for (size_t i = 0; i < names.size(); ++i) {
            const std::string problem = names[i].empty()                    ? "empty"
                                        : names[i].size() > most            ? "longer than " + std::to_string(most)
                                        : i > 0 && names[i] == names[i - 1] ? "used twice"
                                                                            : "";
            if (!problem.empty())
                return {Code::invalid_argument, path_ + ": the " + what + " " + in_quotes(names[i]) + " is " + problem};
        }
        if (names.size() > kGgufMaxEntries)
            return {Code::invalid_argument, path_ + ": " + std::to_string(names.size()) + " " + what + "s, expected " +
                                                "at most " + std::to_string(kGgufMaxEntries)};
        return ok_status();
    };
    std::vector<std::string_view> keys, names;
    for (const auto& entry : entries_)
        keys.push_back(entry.first);
    for (const TensorInfo& tensor : tensors_)
        names.push_back(tensor.name);
    AUSPEX_TRY(check(std::move(keys), "key", kGgufMaxKeyBytes));
    return check(std::move(names), "tensor", kMaxTensorNameBytes);
}

Result<std::string> GgufWriter::header() {
    std::string out = "GGUF";
    put_u32(out, 3);
    put_u64(out, tensors_.size());
    put_u64(out, entries_.size());
    for (const auto& [key, value] : entries_) {
        put_text(out, key);
        out += value;
    }
    std::optional<uint64_t> offset = 0;
    for (const TensorInfo& tensor : tensors_) {
        put_text(out, tensor.name);
        put_u32(out, static_cast<uint32_t>(tensor.shape.size()));
        std::optional<uint64_t> elements = 1;
        for (size_t i = tensor.shape.size(); i-- > 0;) { // the file has the fastest dimension first
            put_u64(out, tensor.shape[i]);
            elements = elements ? checked_mul(*elements, tensor.shape[i]) : elements;
        }
        put_u32(out, tensor.type);
        put_u64(out, *offset);
        const bool shape_fits =
            tensor.shape.size() >= 1 && tensor.shape.size() <= 4 && elements.value_or(0) != 0 && *elements >> 63 == 0;
        if (!shape_fits || tensor.bytes == 0 || tensor.bytes > std::numeric_limits<uint64_t>::max() / 4)
            return fail(Code::invalid_argument, "the shape or size of the tensor " + in_quotes(tensor.name) +
                                                    " is not one that the format can hold");
        offset = checked_add(*offset, round_up<uint64_t>(tensor.bytes, kAlignment));
        if (!offset) return fail(Code::invalid_argument, "the tensors are larger than a file can be");
    }
    out.resize(round_up<uint64_t>(out.size(), kAlignment));
    data_bytes_ = *offset;
    return out;
}

Status GgufWriter::begin() {
    AUSPEX_TRY(failure_);
    if (begun_) return fail(Code::invalid_argument, "begun twice");
    if (path_.find('\0') != std::string::npos) return fail(Code::invalid_argument, "a path holds no zero byte");
    AUSPEX_TRY(check_names());
    AUSPEX_TRY_ASSIGN(bytes, header());
    AUSPEX_TRY_SET(target_, file_behind(path_));
    temporary_ = target_;
    temporary_ += "." + hex(entropy_seed()) + ".part"; // two writers of one path do not meet
    errno = 0;
    file_.open(temporary_, std::ios::binary | std::ios::trunc);
    if (!file_) return fail(Code::io, std::string("cannot be created: ") + std::strerror(errno));
    begun_ = true;
    header_bytes_ = bytes.size();
    return raw_write(bytes.data(), bytes.size());
}

Status GgufWriter::raw_write(const char* bytes, uint64_t size) {
    errno = 0;
    if (!file_.write(bytes, static_cast<std::streamsize>(size)))
        return fail(Code::io, std::string("cannot be written: ") + std::strerror(errno));
    return ok_status();
}

Status GgufWriter::write(std::span<const std::byte> bytes) {
    AUSPEX_TRY(failure_);
    if (!begun_ || finished_) return fail(Code::invalid_argument, "tensor data outside begin and finish");
    if (bytes.empty()) return ok_status();
    if (current_ == tensors_.size()) return fail(Code::invalid_argument, "more data than tensors were declared");
    const TensorInfo& tensor = tensors_[current_];
    if (bytes.size() > tensor.bytes - written_)
        return fail(Code::invalid_argument, "more than the declared " + std::to_string(tensor.bytes) +
                                                " bytes of the tensor " + in_quotes(tensor.name));
    AUSPEX_TRY(raw_write(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    written_ += bytes.size();
    if (written_ < tensor.bytes) return ok_status();
    constexpr char zeros[kAlignment] = {};
    AUSPEX_TRY(raw_write(zeros, round_up<uint64_t>(tensor.bytes, kAlignment) - tensor.bytes));
    ++current_;
    written_ = 0;
    return ok_status();
}

Status GgufWriter::finish(const std::function<Status(const std::string& path)>& check) {
    AUSPEX_TRY(failure_);
    if (!begun_ || finished_) return fail(Code::invalid_argument, "finished twice or before it was begun");
    if (current_ < tensors_.size())
        return fail(Code::invalid_argument, std::to_string(tensors_[current_].bytes - written_) +
                                                " bytes of the tensor " + in_quotes(tensors_[current_].name) +
                                                " are missing");
    errno = 0;
    file_.close(); // writes what is buffered
    if (!file_) return fail(Code::io, std::string("cannot be written: ") + std::strerror(errno));
    if (check) {
        const std::u8string name = temporary_.u8string();
        failure_ = check(std::string(name.begin(), name.end()));
        AUSPEX_TRY(failure_);
    }
    if (const std::error_code error = rename_over(temporary_, target_)) return fail(Code::io, "cannot be given its name: " + error.message());
    finished_ = true;
    return ok_status();
}

} // namespace auspex
