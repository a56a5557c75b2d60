// Conversions written from the definition of the formats, not for speed.
#include "reference/half.h"

#include <bit>
#include <cmath>

namespace auspex::reference {

uint16_t float_to_half(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
    if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7e00u);
    const float magnitude = std::fabs(value);
    if (magnitude >= 65520.0f) return static_cast<uint16_t>(sign | 0x7c00u); // half way to the first value too large
    // nearbyint rounds to even; the unit of the last place is 2^-24 for subnormals, 2^(exponent - 10) otherwise.
    int exponent = -14;
    if (magnitude >= 0x1p-14f) exponent = std::ilogb(magnitude);
    const float units = std::nearbyint(std::ldexp(magnitude, 10 - exponent)); // exact scaling by a power of two
    // The hidden bit of normal numbers adds one to the exponent field, and so does rounding up to the next power.
    const int field = static_cast<int>(units) + ((exponent + 14) << 10);
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(field));
}

float half_to_float(uint16_t bits) {
    const float sign = (bits & 0x8000u) ? -1.0f : 1.0f;
    const int exponent = (bits >> 10) & 0x1f;
    const int mantissa = bits & 0x3ff;
    if (exponent == 0x1f) return mantissa ? std::bit_cast<float>(0x7fc00000u) : sign * INFINITY;
    if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
    return sign * std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
}

uint16_t float_to_bfloat(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40u);
    const uint32_t to_even = 0x7fffu + ((bits >> 16) & 1u);
    return static_cast<uint16_t>((bits + to_even) >> 16);
}

float bfloat_to_float(uint16_t bits) {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

} // namespace auspex::reference
