// Element types of weights, caches and activations.
#pragma once

#include <cstdint>
#include <string_view>

namespace auspex {

enum class DType : uint32_t { f32 = 0, f16 = 1, bf16 = 2, u32 = 3 };

constexpr uint32_t dtype_bytes(DType dtype) {
    return dtype == DType::f32 || dtype == DType::u32 ? 4u : 2u;
}

constexpr std::string_view dtype_name(DType dtype) {
    switch (dtype) {
    case DType::f32: return "f32";
    case DType::f16: return "f16";
    case DType::bf16: return "bf16";
    case DType::u32: return "u32";
    }
    return "?";
}

} // namespace auspex
