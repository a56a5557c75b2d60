// One team of LANES invocations per row; a lane owns the steps that it owns in the mat-vec family, in the same order: the same bits.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/prenorm_args.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint LANES = 8;
layout(constant_id = 1) const uint kOctets = 1;
const uint TEAMS = 1;
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
    for (uint step = lane; step < args.k_steps; step += LANES) {
        for (uint octet = 0u; octet < kOctets; ++octet) {
            uint at_a = x_of_a(step, octet), at_b = x_of_b(step, octet);
            vec4 a = x_vec(from + at_a), b = x_vec(from + at_b);
            squares = add_squares(a, b, squares);
            precise vec4 normed_a = a * weight_vec(at_a);
            precise vec4 normed_b = b * weight_vec(at_b);
            y[to + at_a] = normed_a;
            y[to + at_b] = normed_b;
        }
    }
    float scale = norm_scale(lane_sum(squares), args.norm_width, args.norm_eps);
    if (lane == 0u) scales[row] = scale;
}
