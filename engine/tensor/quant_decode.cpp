// Blocks to f32. One function per block type; each reads its bytes in place, at any alignment. The order of the f32
// operations is part of the contract (quant_blocks.h), so nothing here may be fused or reassociated.
#include "tensor/half.h"
#include "tensor/quant_blocks.h"

#include <cstring>

namespace auspex {
namespace {

using Bytes = const uint8_t*;

// Files are little-endian; so are the machines that Auspex runs on.
uint16_t load_u16(Bytes at) {
    return static_cast<uint16_t>(at[0] | at[1] << 8);
}
float load_half(Bytes at) {
    return half_to_float(load_u16(at));
}

void decode_f32(Bytes block, float* out) {
    std::memcpy(out, block, sizeof(float));
}
void decode_f16(Bytes block, float* out) {
    *out = load_half(block);
}
void decode_bf16(Bytes block, float* out) {
    *out = bfloat_to_float(load_u16(block));
}

// ---- blocks of 32: element i and element i + 16 share a byte --------------------------------------------------------

// d, 32 × i8
void decode_q8_0(Bytes block, float* out) {
    const float d = load_half(block);
    for (int i = 0; i < 32; ++i)
        out[i] = static_cast<float>(static_cast<int8_t>(block[2 + i])) * d;
}

// d, 16 bytes of nibbles
void decode_q4_0(Bytes block, float* out) {
    const float d = load_half(block);
    for (int i = 0; i < 16; ++i)
        out[i] = d * static_cast<float>((block[2 + i] & 15) - 8);
    for (int i = 0; i < 16; ++i)
        out[16 + i] = d * static_cast<float>((block[2 + i] >> 4) - 8);
}

// d, m, 16 bytes of nibbles
void decode_q4_1(Bytes block, float* out) {
    const float d = load_half(block), m = load_half(block + 2);
    for (int i = 0; i < 16; ++i)
        out[i] = d * static_cast<float>(block[4 + i] & 15) + m;
    for (int i = 0; i < 16; ++i)
        out[16 + i] = d * static_cast<float>(block[4 + i] >> 4) + m;
}

// The 32 values of 5 bits from 4 bytes of high bits (element i is bit i) and 16 bytes of nibbles.
void unpack_5_bits(Bytes high, Bytes nibbles, int32_t* q) {
    const uint32_t bits = static_cast<uint32_t>(load_u16(high)) | static_cast<uint32_t>(load_u16(high + 2)) << 16;
    for (int i = 0; i < 16; ++i)
        q[i] = static_cast<int32_t>((nibbles[i] & 15u) | (bits >> i & 1u) << 4);
    for (int i = 0; i < 16; ++i)
        q[16 + i] = static_cast<int32_t>((nibbles[i] >> 4) | (bits >> (16 + i) & 1u) << 4);
}

// d, high bits, nibbles
void decode_q5_0(Bytes block, float* out) {
    const float d = load_half(block);
    int32_t q[32];
    unpack_5_bits(block + 2, block + 6, q);
    for (int i = 0; i < 32; ++i)
        out[i] = d * static_cast<float>(q[i] - 16);
}

// d, m, high bits, nibbles
void decode_q5_1(Bytes block, float* out) {
    const float d = load_half(block), m = load_half(block + 2);
    int32_t q[32];
    unpack_5_bits(block + 4, block + 8, q);
    for (int i = 0; i < 32; ++i)
        out[i] = d * static_cast<float>(q[i]) + m;
}

// ---- blocks of 256: sub-blocks with their own small scales ----------------------------------------------------------

// 16 bytes of scale (low nibble) and minimum (high nibble) per 16 elements, 64 bytes of 2-bit values, d, dmin.
// Of 128 elements, four groups of 32 share 32 bytes, two bits each.
void decode_q2_k(Bytes block, float* out) {
    const Bytes scales = block, quants = block + 16;
    const float d = load_half(block + 80), dmin = load_half(block + 82);
    for (int sub = 0; sub < 16; ++sub) {
        const float scale = d * static_cast<float>(scales[sub] & 15);
        const float min = dmin * static_cast<float>(scales[sub] >> 4);
        const Bytes q = quants + sub / 8 * 32 + sub % 2 * 16;
        const int shift = sub % 8 / 2 * 2;
        for (int i = 0; i < 16; ++i)
            out[sub * 16 + i] = scale * static_cast<float>(q[i] >> shift & 3) - min;
    }
}

// 32 bytes of high bits (element 32 k + i is bit k of byte i; a clear bit subtracts 4), 64 bytes of 2-bit values as
// above, 16 signed scales of 6 bits (4 low bits in 8 bytes, 2 high bits in 4), d.
void decode_q3_k(Bytes block, float* out) {
    const Bytes high = block, quants = block + 32, scales = block + 96;
    const float d = load_half(block + 108);
    for (int sub = 0; sub < 16; ++sub) {
        const int low_bits = scales[sub % 8] >> (sub / 8 * 4) & 15;
        const int high_bits = scales[8 + sub % 4] >> (sub / 4 * 2) & 3;
        const float scale = d * static_cast<float>((low_bits | high_bits << 4) - 32);
        const int lane = sub % 2 * 16;
        const Bytes q = quants + sub / 8 * 32 + lane, h = high + lane;
        const int shift = sub % 8 / 2 * 2, bit = sub / 2;
        for (int i = 0; i < 16; ++i)
            out[sub * 16 + i] = scale * static_cast<float>((q[i] >> shift & 3) + (h[i] >> bit & 1) * 4 - 4);
    }
}

// Scale and minimum of sub-block `sub` (of 8), 6 bits each in 12 bytes: those of the first four lie in the low bits of
// bytes 0-3 and 4-7, those of the last four are nibbles of bytes 8-11 with the upper two bits of bytes 0-7 on top.
struct ScaleMin {
    int scale, min;
};
ScaleMin scale_min(Bytes packed, int sub) {
    if (sub < 4) return {packed[sub] & 63, packed[sub + 4] & 63};
    return {(packed[sub + 4] & 15) | (packed[sub - 4] >> 6) << 4, (packed[sub + 4] >> 4) | (packed[sub] >> 6) << 4};
}

// d, dmin, 12 bytes of scales and minima, 128 bytes of nibbles: two sub-blocks of 32 share 32 bytes.
void decode_q4_k(Bytes block, float* out) {
    const float d = load_half(block), dmin = load_half(block + 2);
    for (int sub = 0; sub < 8; ++sub) {
        const auto [scale_bits, min_bits] = scale_min(block + 4, sub);
        const float scale = d * static_cast<float>(scale_bits), min = dmin * static_cast<float>(min_bits);
        const Bytes q = block + 16 + sub / 2 * 32;
        const int shift = sub % 2 * 4;
        for (int i = 0; i < 32; ++i)
            out[sub * 32 + i] = scale * static_cast<float>(q[i] >> shift & 15) - min;
    }
}

// As q4_k, with 32 bytes of fifth bits (element 32 k + i is bit k of byte i) before the nibbles.
void decode_q5_k(Bytes block, float* out) {
    const float d = load_half(block), dmin = load_half(block + 2);
    const Bytes high = block + 16;
    for (int sub = 0; sub < 8; ++sub) {
        const auto [scale_bits, min_bits] = scale_min(block + 4, sub);
        const float scale = d * static_cast<float>(scale_bits), min = dmin * static_cast<float>(min_bits);
        const Bytes q = block + 48 + sub / 2 * 32;
        const int shift = sub % 2 * 4;
        for (int i = 0; i < 32; ++i)
            out[sub * 32 + i] = scale * static_cast<float>((q[i] >> shift & 15) | (high[i] >> sub & 1) << 4) - min;
    }
}

// 128 bytes of nibbles (of 128 elements, two groups of 64 share 64 bytes), 64 bytes of upper 2 bits (four groups of 32
// share 32 bytes), 16 scales of i8, d.
void decode_q6_k(Bytes block, float* out) {
    const Bytes low = block, high = block + 128, scales = block + 192;
    const float d = load_half(block + 208);
    for (int sub = 0; sub < 16; ++sub) {
        const float scale = d * static_cast<float>(static_cast<int8_t>(scales[sub]));
        const Bytes l = low + sub / 8 * 64 + sub % 4 * 16, h = high + sub / 8 * 32 + sub % 2 * 16;
        const int low_shift = sub % 8 / 4 * 4, high_shift = sub % 8 / 2 * 2;
        for (int i = 0; i < 16; ++i)
            out[sub * 16 + i] =
                scale * static_cast<float>(((l[i] >> low_shift & 15) | (h[i] >> high_shift & 3) << 4) - 32);
    }
}

template <DType dtype, void decode(Bytes, float*)> void decode_all(Bytes blocks, std::span<float> out) {
    constexpr DTypeInfo info = dtype_info(dtype);
    for (size_t at = 0; at < out.size(); at += info.block_elements, blocks += info.block_bytes)
        decode(blocks, out.data() + at);
}

} // namespace

void dequantize_blocks(DType dtype, std::span<const std::byte> blocks, std::span<float> out) {
    const Bytes from = reinterpret_cast<Bytes>(blocks.data());
    switch (dtype) {
    case DType::f32:
        return decode_all<DType::f32, decode_f32>(from, out);
    case DType::f16:
        return decode_all<DType::f16, decode_f16>(from, out);
    case DType::bf16:
        return decode_all<DType::bf16, decode_bf16>(from, out);
    case DType::q8_0:
        return decode_all<DType::q8_0, decode_q8_0>(from, out);
    case DType::q4_0:
        return decode_all<DType::q4_0, decode_q4_0>(from, out);
    case DType::q4_1:
        return decode_all<DType::q4_1, decode_q4_1>(from, out);
    case DType::q5_0:
        return decode_all<DType::q5_0, decode_q5_0>(from, out);
    case DType::q5_1:
        return decode_all<DType::q5_1, decode_q5_1>(from, out);
    case DType::q2_k:
        return decode_all<DType::q2_k, decode_q2_k>(from, out);
    case DType::q3_k:
        return decode_all<DType::q3_k, decode_q3_k>(from, out);
    case DType::q4_k:
        return decode_all<DType::q4_k, decode_q4_k>(from, out);
    case DType::q5_k:
        return decode_all<DType::q5_k, decode_q5_k>(from, out);
    case DType::q6_k:
        return decode_all<DType::q6_k, decode_q6_k>(from, out);
    case DType::u32:
        return; // not a weight
    }
}

} // namespace auspex
