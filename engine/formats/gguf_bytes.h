// Limits, and numbers and texts of a GGUF file as bytes, whatever the machine's byte order and the bytes' alignment.
#pragma once

#include "formats/gguf.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace auspex {

constexpr uint64_t kGgufMaxEntries = 65536; // keys and tensors each
constexpr uint64_t kGgufMaxKeyBytes = 65535;
constexpr uint64_t kGgufMaxTextBytes = 64u << 20;
constexpr uint64_t kGgufMaxArrayItems = 16u << 20;

// Bytes of one element; 0 for strings, arrays and ids that do not exist.
constexpr uint64_t gguf_scalar_bytes(GgufType type) {
    switch (type) {
    case GgufType::u8:
    case GgufType::i8:
    case GgufType::boolean:
        return 1;
    case GgufType::u16:
    case GgufType::i16:
        return 2;
    case GgufType::u32:
    case GgufType::i32:
    case GgufType::f32:
        return 4;
    case GgufType::u64:
    case GgufType::i64:
    case GgufType::f64:
        return 8;
    default:
        return 0;
    }
}

// At most 8 bytes, lowest first.
inline uint64_t little_endian(std::span<const std::byte> bytes) {
    uint64_t value = 0;
    for (size_t i = bytes.size(); i-- > 0;)
        value = value << 8 | std::to_integer<uint64_t>(bytes[i]);
    return value;
}

inline std::string_view as_text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

} // namespace auspex
