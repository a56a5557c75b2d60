// One workgroup per row: its largest magnitude, then high and low f16 parts of every element.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/split_halves_args.h"
#include "include/rounded_to_half.glsl"

layout(local_size_x = 128) in;

layout(push_constant) uniform Push { SplitHalvesArgs args; };
layout(std430, binding = kSplitX) readonly buffer X { uvec4 x[]; };
layout(std430, binding = kSplitHalves) writeonly buffer Halves { uvec2 halves[]; };

shared uint magnitude[gl_WorkGroupSize.x]; // f32 without sign: ordered as integers, NaN above all

void main() {
    uint id = gl_LocalInvocationID.x;
    uint row_in = gl_WorkGroupID.x * (args.width / 4u);
    uint row_out = gl_WorkGroupID.x * halves_vectors(args.width) * 2u;
    uint largest = 0u;
    for (uint i = id; i < args.width / 4u; i += gl_WorkGroupSize.x) {
        uvec4 bits = x[row_in + i] & 0x7fffffffu;
        largest = max(largest, max(max(bits.x, bits.y), max(bits.z, bits.w)));
    }
    magnitude[id] = largest;
    for (uint distance = gl_WorkGroupSize.x / 2u; distance > 0u; distance /= 2u) {
        barrier();
        if (id < distance) magnitude[id] = max(magnitude[id], magnitude[id + distance]);
    }
    barrier();
    // Below 2^-106 rows are as good as zero; their scale stays a normal number.
    uint exponent = clamp(magnitude[0] >> 23, 21u, 254u);
    float scale = uintBitsToFloat((127u + 14u - (exponent - 127u)) << 23);
    uint width = halves_width(args.width);
    for (uint i = id; i < width / 4u; i += gl_WorkGroupSize.x) {
        precise vec4 scaled = i < args.width / 4u ? uintBitsToFloat(x[row_in + i]) * scale : vec4(0.0);
        vec4 high = rounded_to_half(scaled);
        precise vec4 rest = scaled - high;
        halves[row_out + i] = uvec2(packHalf2x16(high.xy), packHalf2x16(high.zw));
        halves[row_out + width / 4u + i] = uvec2(packHalf2x16(rest.xy), packHalf2x16(rest.zw));
    }
    if (id == 0u) halves[row_out + width / 2u] = uvec2((exponent - 14u) << 23, 0u);
}
