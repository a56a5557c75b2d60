// One workgroup per row: its largest magnitude, then high and low f16 parts of every element.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "shared/split_halves_args.h"
#include "include/rounded_to_half.glsl"

layout(local_size_x = 128) in;
const uint AHEAD = 4; // vectors that an invocation asks for before it uses the first

layout(push_constant) uniform Push { SplitHalvesArgs args; };
layout(std430, binding = kSplitX) readonly buffer X { uvec4 x[]; };
layout(std430, binding = kSplitHalves) writeonly buffer Halves { uvec2 halves[]; };

shared uint magnitude[gl_WorkGroupSize.x]; // f32 without sign: ordered as integers, NaN above all

void main() {
    uint id = gl_LocalInvocationID.x;
    uint row_in = gl_WorkGroupID.x * (args.width / 4u);
    uint row_out = gl_WorkGroupID.x * halves_vectors(args.width) * 2u;
    uint largest = 0u;
    for (uint first = id; first < args.width / 4u; first += AHEAD * gl_WorkGroupSize.x)
        [[unroll]] for (uint i = 0u; i < AHEAD; ++i) { // after the last comes the last once more
            uvec4 bits = x[row_in + min(first + i * gl_WorkGroupSize.x, args.width / 4u - 1u)] & 0x7fffffffu;
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
    for (uint first = id; first < width / 4u; first += AHEAD * gl_WorkGroupSize.x) {
        vec4 scaled[AHEAD];
        [[unroll]] for (uint i = 0u; i < AHEAD; ++i) {
            uint at = first + i * gl_WorkGroupSize.x;
            precise vec4 v = uintBitsToFloat(x[row_in + min(at, args.width / 4u - 1u)]) * scale;
            scaled[i] = mix(vec4(0.0), v, bvec4(at < args.width / 4u));
        }
        [[unroll]] for (uint i = 0u; i < AHEAD; ++i) {
            uint at = first + i * gl_WorkGroupSize.x;
            if (at >= width / 4u) continue;
            vec4 high = rounded_to_half(scaled[i]);
            precise vec4 rest = scaled[i] - high;
            halves[row_out + at] = uvec2(packHalf2x16(high.xy), packHalf2x16(high.zw));
            halves[row_out + width / 4u + at] = uvec2(packHalf2x16(rest.xy), packHalf2x16(rest.zw));
        }
    }
    if (id == 0u) halves[row_out + width / 2u] = uvec2((exponent - 14u) << 23, 0u);
}
