// 16-bit floats (IEEE binary16, bfloat16) to f32 and back, rounding to nearest even. Few branches, so that loops over
// them vectorise; no f32 subnormal is ever an operand that matters, so a host thread that flushes them to zero changes
// nothing.
#pragma once

#include <bit>
#include <cstdint>

namespace auspex {

// NaN keeps its sign and payload.
inline float half_to_float(uint16_t half) {
    const uint32_t magnitude = half & 0x7fffu;
    constexpr uint32_t rebias = 112u << 23; // f32's exponent bias less f16's
    const uint32_t normal = (magnitude << 13) + rebias + (magnitude >= 0x7c00u ? rebias : 0u);
    const float subnormal = static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f;
    const uint32_t bits = magnitude < 0x400u ? std::bit_cast<uint32_t>(subnormal) : normal;
    return std::bit_cast<float>(bits | static_cast<uint32_t>(half & 0x8000u) << 16);
}

// From 65520 on infinity; NaN becomes the quiet NaN of its sign.
inline uint16_t float_to_half(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t magnitude = bits & 0x7fffffffu;
    // Below 2^-14 the unit is 2^-24, which is the last place of 0.5: the addition rounds.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    const uint32_t subnormal = std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5f);
    const uint32_t normal = (magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
    uint32_t half = magnitude < 0x38800000u ? subnormal : normal;
    half = magnitude >= 0x477ff000u ? 0x7c00u : half;
    half = magnitude > 0x7f800000u ? 0x7e00u : half;
    return static_cast<uint16_t>(half | (bits >> 16 & 0x8000u));
}

inline float bfloat_to_float(uint16_t bfloat) {
    return std::bit_cast<float>(static_cast<uint32_t>(bfloat) << 16);
}

// NaN is made quiet and keeps its upper payload.
inline uint16_t float_to_bfloat(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : rounded);
}

} // namespace auspex
