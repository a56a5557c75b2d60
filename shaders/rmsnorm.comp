// One team of LANES invocations per row; lane l owns elements l, l + LANES, …
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/rmsnorm_args.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint LANES = 8;
const uint TEAMS = 1;
#include "include/norm_scale.glsl"
#include "include/reduce.glsl"

layout(push_constant) uniform Push { RmsnormArgs args; };
layout(std430, binding = kRmsnormX) readonly buffer X { float x[]; };
layout(std430, binding = kRmsnormWeight) readonly buffer Weight { float weight[]; };
layout(std430, binding = kRmsnormY) writeonly buffer Y { float y[]; };

void main() {
    uint lane = lane_index();
    uint from = (args.x_first_row + gl_WorkGroupID.x * args.x_row_step) * args.stride;
    uint to = gl_WorkGroupID.x * args.stride;
    precise float squares = 0.0;
    for (uint i = lane; i < args.width; i += LANES) {
        float v = x[from + i];
        squares = fma(v, v, squares);
    }
    float scale = norm_scale(lane_sum(squares), args.width, args.eps);
    for (uint i = lane; i < args.stride; i += LANES) {
        precise float v = 0.0;
        if (i < args.width) v = x[from + i] * scale * weight[i];
        y[to + i] = v;
    }
}
