// One team of LANES invocations per row; a lane owns the steps that it owns in the mat-vec family, in the same order: the same bits.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "shared/prenorm_args.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint LANES = 8;
layout(constant_id = 1) const uint kOctets = 1;
const uint TEAMS = 1;
#ifdef WIDE
const uint AHEAD = 1; // llvmpipe's lanes wait for no memory
#else
const uint AHEAD = 4; // octets that a lane asks for before it writes one, since no compiler moves a load over a store; of a block all
#endif
#include "include/norm_scale.glsl"
#include "include/octets.glsl"
#include "include/reduce.glsl"
#include "include/wide.glsl"

layout(push_constant) uniform Push { PrenormArgs args; };
layout(std430, binding = kPrenormX) readonly buffer X { WIDE_VEC x[]; };
layout(std430, binding = kPrenormWeight) readonly buffer Weight { WIDE_VEC weight[]; };
TEXEL_VECS(kTexelVecs + kPrenormX, x_texels)
TEXEL_VECS(kTexelVecs + kPrenormWeight, weight_texels)
layout(std430, binding = kPrenormY) writeonly buffer Y { vec4 y[]; };
layout(std430, binding = kPrenormScales) writeonly buffer Scales { float scales[]; };

vec4 x_vec(uint at) { return uintBitsToFloat(FETCH_VEC(x, x_texels, at)); }
vec4 weight_vec(uint at) { return uintBitsToFloat(FETCH_VEC(weight, weight_texels, at)); }

void main() {
    uint lane = lane_index();
    uint row = gl_WorkGroupID.x;
    uint from = (args.x_first_row + row * args.x_row_step) * args.stride;
    uint to = row * args.stride;
    precise float squares = 0.0;
    uint n_own = lane < args.k_steps ? ((args.k_steps - 1u - lane) / LANES + 1u) * kOctets : 0u;
    for (uint first = 0u; first < n_own; first += AHEAD) {
        uint at_a[AHEAD], at_b[AHEAD];
        vec4 a[AHEAD], b[AHEAD], weight_a[AHEAD], weight_b[AHEAD];
        [[unroll]] for (uint i = 0u; i < AHEAD; ++i) {
            uint own = min(first + i, n_own - 1u); // after the last comes the last once more, which is written as it was
            uint step = lane + own / kOctets * LANES;
            at_a[i] = x_of_a(step, own % kOctets);
            at_b[i] = x_of_b(step, own % kOctets);
            a[i] = x_vec(from + at_a[i]);
            b[i] = x_vec(from + at_b[i]);
            weight_a[i] = weight_vec(at_a[i]);
            weight_b[i] = weight_vec(at_b[i]);
        }
        [[unroll]] for (uint i = 0u; i < AHEAD; ++i) { // without branches, into which compilers would move the loads
            float sum = add_squares(a[i], b[i], squares);
            squares = first + i < n_own ? sum : squares;
            precise vec4 normed_a = a[i] * weight_a[i];
            precise vec4 normed_b = b[i] * weight_b[i];
            y[to + at_a[i]] = normed_a;
            y[to + at_b[i]] = normed_b;
        }
    }
    float scale = norm_scale(lane_sum(squares), args.norm_width, args.norm_eps);
    if (lane == 0u) scales[row] = scale;
}
