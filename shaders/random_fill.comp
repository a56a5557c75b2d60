// One invocation per 16 bytes of a row; a pure function of (seed, row of the tensor, place in it). Of quantised formats the
// code bits of any plane are random; the words of the scale plane are made to fit the format.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/random_fill_args.h"
#include "shared/weight_format.h"
#include "include/random.glsl"

layout(local_size_x = 64) in;
layout(constant_id = 0) const uint WEIGHT_LAYOUT = kFormatBf16;
#include "include/weight_layout.glsl"

layout(push_constant) uniform Push { RandomFillArgs args; };
layout(std430, binding = kRandomFillRows) writeonly buffer Rows { uvec4 rows[]; };

const uint kScaleKind = SCALE_KIND(FORMAT);

float codes() { return float(1u << (LOW_BITS(FORMAT) + HIGH_BITS(FORMAT))); }

// Uniform codes of n values have the deviation √((n² - 1) / 12) around their middle.
float code_spread() { return sqrt((codes() * codes() - 1.0) / 12.0); }

// Uniform of deviation `spread`, 24 bits.
float uniform_weight(uint r) { return (2.0 * uniform01(r) - 1.0) * (1.7320508 * args.spread); }

uint rounded_bf16(float value) {
    uint bits = floatBitsToUint(value);
    return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

// Word w of a row of plain numbers; r: fresh bits, two elements of 16 bits or one of 32.
uint plain_word(uint w, uint r, uint r2) {
    if (FORMAT == kFormatF32) return w < args.cols ? floatBitsToUint(uniform_weight(r)) : 0u;
    float a = 2u * w < args.cols ? uniform_weight(r) : 0.0;
    float b = 2u * w + 1u < args.cols ? uniform_weight(r2) : 0.0;
    return FORMAT == kFormatF16 ? packHalf2x16(vec2(a, b)) : rounded_bf16(a) | rounded_bf16(b) << 16;
}

// Word w of the scale plane. Values are centred: the min, where a format has one, is the middle of the codes times the scale;
// elsewhere codes lie by half a step to one side of zero, and the sign of the scale is random.
// r: random bits; of kScalesPacked the same for the four words of a block.
uint scale_word(uint w, uint r) {
    float middle = (codes() - 1.0) / 2.0;
    float unit = args.spread / code_spread(); // a scale
    if (kScaleKind == kScalesHalf) return packHalf2x16(vec2(unit)) | (r & 0x80008000u);
    if (kScaleKind == kScalesPair) return packHalf2x16(vec2(unit, -middle * unit));
    if (kScaleKind == kScalesPacked) { // scales and mins 32 … 47, each min like its scale
        float d = unit / 39.5;
        return w % 4u == 0u ? packHalf2x16(vec2(d, middle * d)) : w % 4u == 3u ? 0xaaaaaaaau : r;
    }
    if (kScaleKind == kScalesSigned) { // 32 … 47, or by one's complement -48 … -33
        uint negative = (r >> 7 & 0x01010101u) * 0xffu;
        return w % 5u == 0u ? packHalf2x16(vec2(unit / 39.5, 0.0)) : ((r & 0x0f0f0f0fu) | 0x20202020u) ^ negative;
    }
    // 8 … 15, each min like its scale
    uint upper = (r & 0x07070707u) | 0x08080808u;
    return w % 5u == 0u ? packHalf2x16(vec2(unit / 11.5, middle * unit / 11.5)) : upper | upper << 4;
}

void main() {
    uint vectors = args.n_rows * args.row_vectors;
    for (uint i = gl_GlobalInvocationID.x; i < vectors; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
        uint row = i / args.row_vectors, v = i % args.row_vectors;
        uvec2 key = uvec2(args.seed_low, args.seed_high);
        uvec4 r = philox(uvec4(v, args.first_row + row, 0u, 0u), key);
        uvec4 words = r;
        if (FORMAT < kFormatQ8_0) { // numbers
            uvec4 more = philox(uvec4(v, args.first_row + row, 1u, 0u), key);
            for (uint e = 0u; e < 4u; ++e) words[e] = plain_word(4u * v + e, r[e], more[e]);
        } else if (v >= SCALE_PLANE(FORMAT, args.steps)) {
            uint first = 4u * (v - SCALE_PLANE(FORMAT, args.steps));
            for (uint e = 0u; e < 4u; ++e)
                words[e] = first + e < SCALE_WORDS(FORMAT, args.steps) ? scale_word(first + e, kScaleKind == kScalesPacked ? r.x : r[e]) : 0u;
        }
        rows[row_place(row, args.row_vectors) + vector_place(v)] = words;
    }
}
