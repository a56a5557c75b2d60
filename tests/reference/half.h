// 16-bit floats by the book (IEEE 754 binary16, bfloat16), rounding to nearest even.
#pragma once

#include <cmath>
#include <cstdint>

namespace auspex::reference {

uint16_t float_to_half(float value);
float half_to_float(uint16_t bits);
uint16_t float_to_bfloat(float value);
float bfloat_to_float(uint16_t bits);

// To the 11 significant bits of f16, however large or small; ties to even.
inline double round_to_11_bits(double value) {
    int exponent = 0;
    const double significand = std::frexp(value, &exponent);
    return std::ldexp(std::nearbyint(std::ldexp(significand, 11)), exponent - 11);
}
inline double round_to_half(double value) {
    return half_to_float(float_to_half(static_cast<float>(value)));
}

} // namespace auspex::reference
