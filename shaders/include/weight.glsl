// Weights of one output, step by step, in every format of shared/weight_format.h. Declare the constant WEIGHT_LAYOUT and define
// WEIGHT_BINDING before including; QUANT for the quantised formats, whose steps are four octets instead of one.
#include "shared/weight_format.h"
#include "include/weight_layout.glsl"
#include "include/wide.glsl"

layout(std430, binding = WEIGHT_BINDING) readonly buffer Weight { WIDE_VEC weight[]; };
TEXEL_VECS(kTexelVecs + WEIGHT_BINDING, weight_texels)
uvec4 weight_vec(uint at) { return FETCH_VEC(weight, weight_texels, at); }

// row_begin(row, steps): where a row begins, in 16 bytes. load_step(begin, step, steps): a step of the row that begins there;
// load_raw_step and scaled_step are its halves, for those who load long before they need it.
#ifndef QUANT
const uint kOctets = 1u;

struct WeightStep {
    uvec4 low, high; // f32 takes both
};
#define RawStep WeightStep

uint row_begin(uint row, uint steps) { return row_place(row, steps * STEP_VECTORS(FORMAT)); }

WeightStep load_step(uint begin, uint step, uint steps) {
    WeightStep s;
    uint at = begin + vector_place(step * STEP_VECTORS(FORMAT));
    s.low = weight_vec(at);
    s.high = FORMAT == kFormatF32 ? weight_vec(at + 1u) : uvec4(0u);
    return s;
}
RawStep load_raw_step(uint begin, uint step, uint steps) { return load_step(begin, step, steps); }
WeightStep scaled_step(RawStep s, uint step) { return s; }

// Elements 0 to 3 (a) and 4 to 7 (b).
void octet_weights(WeightStep s, uint octet, out vec4 a, out vec4 b) {
    uvec4 w = s.low;
    if (FORMAT == kFormatF32) {
        a = uintBitsToFloat(s.low);
        b = uintBitsToFloat(s.high);
    } else if (FORMAT == kFormatBf16) {
        a = uintBitsToFloat(uvec4(w.x << 16, w.x & 0xffff0000u, w.y << 16, w.y & 0xffff0000u));
        b = uintBitsToFloat(uvec4(w.z << 16, w.z & 0xffff0000u, w.w << 16, w.w & 0xffff0000u));
    } else {
        a = vec4(unpackHalf2x16(w.x), unpackHalf2x16(w.y));
        b = vec4(unpackHalf2x16(w.z), unpackHalf2x16(w.w));
    }
}

#else
#include "include/half_value.glsl"
const uint kOctets = 4u;
const uint kLowBits = LOW_BITS(FORMAT);
const uint kHighBits = HIGH_BITS(FORMAT);
const uint kLowMask = 0x01010101u * ((1u << kLowBits) - 1u);
const uint kHighMask = 0x01010101u * ((1u << kHighBits) - 1u);
const uint kScaleKind = SCALE_KIND(FORMAT);
const uint kZeroCode = ZERO_CODE(FORMAT);

layout(std430, binding = WEIGHT_BINDING) readonly buffer WeightPairs { WIDE_PAIR weight_pairs[]; }; // the same bytes
layout(std430, binding = WEIGHT_BINDING) readonly buffer WeightWords { uint weight_words[]; };      // the same bytes
TEXEL_WORDS(kTexelWords + WEIGHT_BINDING, weight_word_texels)
uvec2 weight_pair(uint at) { return FETCH_PAIR(weight_pairs, weight_texels, at); }
uint weight_word(uint at) { return FETCH_WORD(weight_words, weight_word_texels, at); }

struct RawStep {
    uvec4 low, more_low; // more_low: 8-bit codes
    uvec2 high;
    uvec4 scales; // as many words as their kind has
};
struct WeightStep {
    uvec4 low, more_low;
    uvec2 high;
    vec2 scale, min_or_bias; // of a and b; bias = -zero · scale in formats without min
};

uvec4 load_scales(uint first_word, uint step) {
    if (kScaleKind == kScalesHalf) return uvec4(weight_word(first_word + step / 2u), 0u, 0u, 0u);
    if (kScaleKind == kScalesPair) return uvec4(weight_word(first_word + step), 0u, 0u, 0u);
    if (kScaleKind == kScalesPacked) return weight_vec(first_word / 4u + step / 8u);
    uint head = first_word + step / 8u * 5u;
    return uvec4(weight_word(head), weight_word(head + 1u + step % 8u / 2u), 0u, 0u);
}

void decode_scales(uvec4 words, uint step, out vec2 scale, out vec2 least) {
    uint s = step % 8u;
    if (kScaleKind == kScalesHalf) {
        scale = vec2(half_value(words.x >> (16u * (step & 1u))));
        least = vec2(0.0);
    } else if (kScaleKind == kScalesPair) {
        scale = vec2(half_value(words.x & 0xffffu));
        least = vec2(-half_value(words.x >> 16));
    } else if (kScaleKind == kScalesPacked) {
        precise vec2 product = vec2(half_value(words.x & 0xffffu), half_value(words.x >> 16)) *
                               vec2(float((words.y >> (4u * s) & 15u) | (words.w >> (2u * s) & 3u) << 4),
                                    float((words.z >> (4u * s) & 15u) | (words.w >> (16u + 2u * s) & 3u) << 4));
        scale = product.xx;
        least = product.yy;
    } else {
        uint codes = words.y >> (16u * (s & 1u));
        if (kScaleKind == kScalesSigned) {
            precise vec2 product = half_value(words.x & 0xffffu) * vec2(float(bitfieldExtract(int(codes), 0, 8)),
                                                                        float(bitfieldExtract(int(codes), 8, 8)));
            scale = product;
            least = vec2(0.0);
        } else {
            precise vec2 product = half_value(words.x & 0xffffu) * vec2(float(codes & 15u), float(codes >> 8 & 15u));
            precise vec2 least_product = half_value(words.x >> 16) * vec2(float(codes >> 4 & 15u), float(codes >> 12 & 15u));
            scale = product;
            least = least_product;
        }
    }
}

uint row_begin(uint row, uint steps) { return row * QUANTIZED_VECTORS(FORMAT, steps); }

RawStep load_raw_step(uint begin, uint step, uint steps) {
    RawStep s;
    s.more_low = uvec4(0u);
    s.high = uvec2(0u);
    if (kLowBits == 8u) {
        s.low = weight_vec(begin + 2u * step);
        s.more_low = weight_vec(begin + 2u * step + 1u);
    } else if (kLowBits == 4u) {
        s.low = weight_vec(begin + step);
    } else {
        s.low = uvec4(weight_pair(2u * begin + step), 0u, 0u);
    }
    uint high = begin + HIGH_PLANE(FORMAT, steps);
    if (kHighBits == 1u) s.high.x = weight_word(4u * high + step);
    if (kHighBits == 2u) s.high = weight_pair(2u * high + step);
    s.scales = load_scales(4u * (begin + SCALE_PLANE(FORMAT, steps)), step);
    return s;
}

WeightStep scaled_step(RawStep raw, uint step) {
    WeightStep s;
    s.low = raw.low;
    s.more_low = raw.more_low;
    s.high = raw.high;
    decode_scales(raw.scales, step, s.scale, s.min_or_bias);
    if (kZeroCode != 0u) s.min_or_bias = -float(kZeroCode) * s.scale; // exact: zero is a power of two
    return s;
}

WeightStep load_step(uint begin, uint step, uint steps) { return scaled_step(load_raw_step(begin, step, steps), step); }

vec4 bytes_of(uint word) {
    return vec4(float(word & 0xffu), float(word >> 8 & 0xffu), float(word >> 16 & 0xffu), float(word >> 24));
}

// scale · (code - zero) in one rounding, or scale · code - min in two: as the formats' reference decoder rounds them.
vec4 decode(vec4 code, float scale, float min_or_bias) {
    precise vec4 product = code * scale;
    precise vec4 twice_rounded = product - min_or_bias;
    precise vec4 once_rounded = fma(code, vec4(scale), vec4(min_or_bias));
    return kZeroCode != 0u ? once_rounded : twice_rounded;
}

// Four codes a word.
void octet_codes(WeightStep s, uint octet, out uint a, out uint b) {
    // All forms as one expression: the constants choose, and there is nothing to branch on. 8-bit codes have no high bits.
    uint low_a = kLowBits == 2u ? s.low.x >> (2u * octet) : s.low[octet];
    uint low_b = kLowBits == 8u ? s.more_low[octet] : kLowBits == 4u ? s.low[octet] >> 4 : s.low.y >> (2u * octet);
    uint high_a = kHighBits == 1u ? s.high.x >> octet : s.high.x >> (2u * octet);
    uint high_b = kHighBits == 1u ? s.high.x >> (4u + octet) : s.high.y >> (2u * octet);
    a = (low_a & kLowMask) | (high_a & kHighMask) << (kLowBits & 7u);
    b = (low_b & kLowMask) | (high_b & kHighMask) << (kLowBits & 7u);
}

void octet_weights(WeightStep s, uint octet, out vec4 a, out vec4 b) {
    uint code_a, code_b;
    octet_codes(s, octet, code_a, code_b);
    a = decode(bytes_of(code_a), s.scale.x, s.min_or_bias.x);
    b = decode(bytes_of(code_b), s.scale.y, s.min_or_bias.y);
}
#endif
#include "include/octets.glsl"
