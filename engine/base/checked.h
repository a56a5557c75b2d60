// Size arithmetic on numbers that come from files: an overflow is an answer, never a wrap.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>

namespace auspex {

inline std::optional<uint64_t> checked_mul(uint64_t a, uint64_t b) {
    if (a != 0 && b > std::numeric_limits<uint64_t>::max() / a) return std::nullopt;
    return a * b;
}

inline std::optional<uint64_t> checked_add(uint64_t a, uint64_t b) {
    if (b > std::numeric_limits<uint64_t>::max() - a) return std::nullopt;
    return a + b;
}

template <std::unsigned_integral T> constexpr T ceil_div(T a, T b) {
    return (a + b - 1) / b;
}

template <std::unsigned_integral T> constexpr T round_up(T a, T multiple) {
    return ceil_div(a, multiple) * multiple;
}

} // namespace auspex
