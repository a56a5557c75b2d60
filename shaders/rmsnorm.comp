// One team of LANES invocations per row; lane l owns elements l, l + LANES, …
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "shared/rmsnorm_args.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint LANES = 8;
const uint TEAMS = 1;
const uint AHEAD = 8; // elements that a lane asks for before it uses the first: a row of 3072 would else be 96 waits
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
    for (uint first = lane; first < args.width; first += AHEAD * LANES) {
        float v[AHEAD]; // after the last come others of the row, which do not count
        [[unroll]] for (uint i = 0u; i < AHEAD; ++i) v[i] = x[from + min(first + i * LANES, args.width - 1u)];
        [[unroll]] for (uint i = 0u; i < AHEAD; ++i) {
            precise float sum = fma(v[i], v[i], squares);
            squares = first + i * LANES < args.width ? sum : squares;
        }
    }
    float scale = norm_scale(lane_sum(squares), args.width, args.eps);
    for (uint first = lane; first < args.stride; first += AHEAD * LANES) {
        float normed[AHEAD];
        [[unroll]] for (uint i = 0u; i < AHEAD; ++i) {
            uint at = min(first + i * LANES, args.width - 1u);
            precise float v = x[from + at] * scale * weight[at];
            normed[i] = first + i * LANES < args.width ? v : 0.0;
        }
        [[unroll]] for (uint i = 0u; i < AHEAD; ++i)
            if (first + i * LANES < args.stride) y[to + first + i * LANES] = normed[i];
    }
}
