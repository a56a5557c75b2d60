// What the scale searches of q4_k and q6_k share: four floats at a time, rounding, and units as a file can hold them.
// Sums run in four fixed lanes: the same on every machine, and no addition waits for the one before.
#pragma once

#include "tensor/half.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace auspex {

#if defined(__GNUC__)
using Float4 = float __attribute__((vector_size(16)));
inline Float4 four(float v) {
    return Float4{v, v, v, v};
}
inline Float4 lesser(Float4 a, Float4 b) {
    return a < b ? a : b;
}
inline Float4 greater(Float4 a, Float4 b) {
    return a > b ? a : b;
}
inline float total(Float4 v) {
    return (v[0] + v[1]) + (v[2] + v[3]);
}
#else
struct Float4 {
    float v[4];
};
template <typename Op> Float4 each(Float4 a, Float4 b, Op op) {
    return {{op(a.v[0], b.v[0]), op(a.v[1], b.v[1]), op(a.v[2], b.v[2]), op(a.v[3], b.v[3])}};
}
inline Float4 four(float v) {
    return {{v, v, v, v}};
}
inline Float4 operator+(Float4 a, Float4 b) {
    return each(a, b, [](float x, float y) { return x + y; });
}
inline Float4 operator-(Float4 a, Float4 b) {
    return each(a, b, [](float x, float y) { return x - y; });
}
inline Float4 operator*(Float4 a, Float4 b) {
    return each(a, b, [](float x, float y) { return x * y; });
}
inline Float4& operator+=(Float4& a, Float4 b) {
    return a = a + b;
}
inline Float4 lesser(Float4 a, Float4 b) {
    return each(a, b, [](float x, float y) { return x < y ? x : y; });
}
inline Float4 greater(Float4 a, Float4 b) {
    return each(a, b, [](float x, float y) { return x > y ? x : y; });
}
inline float total(Float4 a) {
    return (a.v[0] + a.v[1]) + (a.v[2] + a.v[3]);
}
#endif

inline Float4 load4(const float* at) {
    Float4 v;
    std::memcpy(&v, at, sizeof v);
    return v;
}
inline void store4(float* at, Float4 v) {
    std::memcpy(at, &v, sizeof v);
}

// Nearest integer of |v| < 2^22, halves to even: above 2^23 a float has no places after the point.
constexpr float kRoundingShift = 12582912.0f; // 1.5 · 2^23
inline float nearest(float v) {
    return (v + kRoundingShift) - kRoundingShift;
}
inline Float4 nearest(Float4 v) {
    return (v + four(kRoundingShift)) - four(kRoundingShift);
}
inline float clamped(float v, float low, float high) {
    return std::min(std::max(v, low), high);
}
inline Float4 clamped(Float4 v, float low, float high) {
    return lesser(greater(v, four(low)), four(high));
}

constexpr int kSuperBlock = 256;
constexpr float kLeastUnit = 0x1p-24f; // the smallest that an f16 can hold

// What the file will hold of a unit that is not zero.
inline float storable(float unit) {
    constexpr float max_half = 65504.0f;
    const float magnitude = half_to_float(float_to_half(std::min(std::fabs(unit), max_half)));
    return std::copysign(std::max(magnitude, kLeastUnit), unit);
}
inline void store_half(uint8_t* at, float value) {
    const uint16_t bits = float_to_half(value);
    at[0] = static_cast<uint8_t>(bits & 0xff);
    at[1] = static_cast<uint8_t>(bits >> 8);
}

// The block without what no code can express (so that no square overflows); false when all of it rounds to zero.
inline bool load_block(const float* in, float* x) {
    constexpr float limit = 0x1p28f; // above 65504 · 128 · 32
    float largest = 0;
    for (int i = 0; i < kSuperBlock; ++i) {
        x[i] = clamped(in[i], -limit, limit);
        largest = std::max(largest, std::fabs(x[i]));
    }
    return largest >= kLeastUnit / 2;
}

} // namespace auspex
