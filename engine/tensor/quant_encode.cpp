// f32 to the plain types and to the blocks of 32, by the reference's rule. Blocks of 256 are quant_encode_k.cpp's.
#include "tensor/half.h"
#include "tensor/quant_blocks.h"
#include "tensor/quant_encode_k.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace auspex {
namespace {

using Bytes = uint8_t*;

void store_u16(Bytes at, uint16_t value) {
    at[0] = static_cast<uint8_t>(value & 0xff);
    at[1] = static_cast<uint8_t>(value >> 8);
}

void encode_f32(const float* in, Bytes out) {
    std::memcpy(out, in, sizeof(float));
}
void encode_f16(const float* in, Bytes out) {
    store_u16(out, float_to_half(*in));
}
void encode_bf16(const float* in, Bytes out) {
    store_u16(out, float_to_bfloat(*in));
}

// Largest magnitude of 32 floats, as bits: magnitudes order like their bits, and integers vectorise.
uint32_t largest_magnitude(const float* in) {
    int32_t largest = 0;
    for (int i = 0; i < 32; ++i) {
        const auto bits = static_cast<int32_t>(std::bit_cast<uint32_t>(in[i]) & 0x7fffffffu);
        largest = largest < bits ? bits : largest;
    }
    return static_cast<uint32_t>(largest);
}

// 1/d, or 0 where that has no use: for a zero block, and below 2^-128, where the f16 scale is zero anyway.
float inverse_scale(float d) {
    const float inverse = d == 0 ? 0.0f : 1.0f / d;
    return std::isinf(inverse) ? 0.0f : inverse;
}

// The largest magnitude becomes 127; halves round away from zero.
void encode_q8_0(const float* in, Bytes out) {
    const float d = std::bit_cast<float>(largest_magnitude(in)) / 127.0f;
    const float inverse = inverse_scale(d);
    store_u16(out, float_to_half(d));
    for (int i = 0; i < 32; ++i) {
        const float scaled = in[i] * inverse, magnitude = std::fabs(scaled);
        const auto whole = static_cast<int32_t>(magnitude); // adding 0.5 first would lift 0.49999997 to 1
        const int32_t rounded = whole + (magnitude - static_cast<float>(whole) >= 0.5f ? 1 : 0);
        out[2 + i] = static_cast<uint8_t>(scaled < 0 ? -rounded : rounded);
    }
}

// The first value of the largest magnitude becomes 0 (that is, −8), whatever its sign.
void encode_q4_0(const float* in, Bytes out) {
    const uint32_t largest = largest_magnitude(in);
    int at = 0;
    while ((std::bit_cast<uint32_t>(in[at]) & 0x7fffffffu) != largest)
        ++at;
    const float d = in[at] / -8.0f;
    const float inverse = inverse_scale(d);
    store_u16(out, float_to_half(d));
    int32_t q[32];
    for (int i = 0; i < 32; ++i) {
        const auto rounded = static_cast<int32_t>(in[i] * inverse + 8.5f);
        q[i] = rounded < 15 ? rounded : 15;
    }
    for (int i = 0; i < 16; ++i)
        out[2 + i] = static_cast<uint8_t>(q[i] | q[16 + i] << 4);
}

template <DType dtype, void encode(const float*, Bytes)> void encode_all(std::span<const float> in, Bytes out) {
    constexpr DTypeInfo info = dtype_info(dtype);
    for (size_t at = 0; at < in.size(); at += info.block_elements, out += info.block_bytes)
        encode(in.data() + at, out);
}

} // namespace

void quantize_blocks(DType dtype, std::span<const float> in, std::span<std::byte> out) {
    const Bytes to = reinterpret_cast<Bytes>(out.data());
    switch (dtype) {
    case DType::f32:
        return encode_all<DType::f32, encode_f32>(in, to);
    case DType::f16:
        return encode_all<DType::f16, encode_f16>(in, to);
    case DType::bf16:
        return encode_all<DType::bf16, encode_bf16>(in, to);
    case DType::q8_0:
        return encode_all<DType::q8_0, encode_q8_0>(in, to);
    case DType::q4_0:
        return encode_all<DType::q4_0, encode_q4_0>(in, to);
    case DType::q4_k:
        return encode_all<DType::q4_k, encode_q4_k>(in, to);
    case DType::q6_k:
        return encode_all<DType::q6_k, encode_q6_k>(in, to);
    default:
        return; // can_quantize_to is false
    }
}

} // namespace auspex
