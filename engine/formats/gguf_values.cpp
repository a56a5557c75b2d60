// What the accessors of GgufContents and the walkers of its lists give out. parse_gguf (gguf.cpp) has checked all
// sizes.
#include "formats/gguf.h"

#include "formats/gguf_bytes.h"

#include <algorithm>
#include <bit>

namespace auspex {
namespace {

template <typename T> T from_bytes(std::span<const std::byte> bytes) {
    if constexpr (sizeof(T) == 4)
        return std::bit_cast<T>(static_cast<uint32_t>(little_endian(bytes)));
    else
        return std::bit_cast<T>(little_endian(bytes));
}

std::optional<double> real_of(GgufType type, std::span<const std::byte> bytes) {
    if (type == GgufType::f32) return static_cast<double>(from_bytes<float>(bytes));
    if (type == GgufType::f64) return from_bytes<double>(bytes);
    return std::nullopt;
}

// Sign and magnitude of an integer; the magnitude of a negative one is not needed by anyone.
struct Integer {
    bool negative;
    uint64_t bits; // two's complement
};
std::optional<Integer> integer_of(GgufType type, std::span<const std::byte> bytes) {
    const bool is_signed =
        type == GgufType::i8 || type == GgufType::i16 || type == GgufType::i32 || type == GgufType::i64;
    const bool is_unsigned =
        type == GgufType::u8 || type == GgufType::u16 || type == GgufType::u32 || type == GgufType::u64;
    if (!is_signed && !is_unsigned) return std::nullopt;
    uint64_t bits = little_endian(bytes);
    const bool negative = is_signed && (std::to_integer<uint32_t>(bytes.back()) & 0x80) != 0;
    if (negative && bytes.size() < 8) bits |= ~uint64_t{0} << (8 * bytes.size());
    return Integer{negative, bits};
}

std::optional<std::span<const std::byte>> item_bytes(const GgufArray& array, uint64_t index) {
    const uint64_t bytes = gguf_scalar_bytes(array.type);
    if (bytes == 0 || index >= array.count) return std::nullopt;
    return array.bytes.subspan(index * bytes, bytes);
}

} // namespace

const GgufContents::Entry* GgufContents::find(std::string_view key) const {
    const auto it = std::lower_bound(entries.begin(), entries.end(), key,
                                     [](const Entry& entry, std::string_view wanted) { return entry.key < wanted; });
    return it == entries.end() || it->key != key ? nullptr : &*it;
}

std::optional<uint64_t> GgufContents::unsigned_value(std::string_view key) const {
    const Entry* entry = find(key);
    const auto value = entry ? integer_of(entry->type, entry->bytes) : std::nullopt;
    return value && !value->negative ? std::optional(value->bits) : std::nullopt;
}

bool GgufContents::is_minus_one(std::string_view key) const {
    const Entry* entry = find(key);
    const auto value = entry ? integer_of(entry->type, entry->bytes) : std::nullopt;
    return value && value->negative && value->bits == ~uint64_t{0};
}

std::optional<double> GgufContents::real_value(std::string_view key) const {
    const Entry* entry = find(key);
    return entry ? real_of(entry->type, entry->bytes) : std::nullopt;
}

std::optional<bool> GgufContents::bool_value(std::string_view key) const {
    const Entry* entry = find(key);
    if (!entry || entry->type != GgufType::boolean) return std::nullopt;
    return entry->bytes[0] != std::byte{0};
}

std::optional<std::string_view> GgufContents::text_value(std::string_view key) const {
    const Entry* entry = find(key);
    if (!entry || entry->type != GgufType::string) return std::nullopt;
    return as_text(entry->bytes);
}

const GgufArray* GgufContents::array_value(std::string_view key, GgufType type) const {
    const Entry* entry = find(key);
    return entry && entry->type == GgufType::array && entry->array.type == type ? &entry->array : nullptr;
}

const GgufTensor* GgufContents::find_tensor(std::string_view name) const {
    const auto it = std::find_if(tensors.begin(), tensors.end(), [&](const GgufTensor& t) { return t.name == name; });
    return it == tensors.end() ? nullptr : &*it;
}

std::optional<int64_t> integer_at(const GgufArray& array, uint64_t index) {
    const auto bytes = item_bytes(array, index);
    const auto value = bytes ? integer_of(array.type, *bytes) : std::nullopt;
    if (!value || (!value->negative && value->bits >> 63 != 0)) return std::nullopt;
    return static_cast<int64_t>(value->bits);
}

std::optional<double> real_at(const GgufArray& array, uint64_t index) {
    const auto bytes = item_bytes(array, index);
    return bytes ? real_of(array.type, *bytes) : std::nullopt;
}

std::optional<std::string_view> next_text(std::span<const std::byte>& rest) {
    if (rest.size() < 8) return std::nullopt;
    const uint64_t length = little_endian(rest.first(8));
    if (length > rest.size() - 8) return std::nullopt;
    const auto text = as_text(rest.subspan(8, length));
    rest = rest.subspan(8 + length);
    return text;
}

} // namespace auspex
