// Joins the splits of one row's head: one workgroup per (head, row), invocations stride over dimensions.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/attention_args.h"

layout(local_size_x = 32) in;

layout(push_constant) uniform Push { CombineArgs args; };
layout(std430, binding = kCombinePartials) readonly buffer Partials { float partials[]; };
layout(std430, binding = kCombineRows) readonly buffer Rows { Row rows[]; };
layout(std430, binding = kCombineY) writeonly buffer Y { float y[]; };

void main() {
    uint head = gl_WorkGroupID.x;
    uint r = gl_WorkGroupID.y;
    uint stride = args.head_dim + 2u;
    uint base = (r * args.n_heads + head) * args.max_splits * stride;
    bool live = rows[r].live != 0u;
    uint n_splits = live ? rows[r].position / args.split + 1u : 0u;
    float largest = -3.402823466e38;
    for (uint s = 0u; s < n_splits; ++s) largest = max(largest, partials[base + s * stride + args.head_dim]);
    precise float total = 0.0;
    for (uint s = 0u; s < n_splits; ++s)
        total = fma(partials[base + s * stride + args.head_dim + 1u], exp(partials[base + s * stride + args.head_dim] - largest), total);
    for (uint d = gl_LocalInvocationID.x; d < args.head_dim; d += gl_WorkGroupSize.x) {
        precise float sum = 0.0;
        for (uint s = 0u; s < n_splits; ++s)
            sum = fma(partials[base + s * stride + d], exp(partials[base + s * stride + args.head_dim] - largest), sum);
        y[(r * args.n_heads + head) * args.head_dim + d] = live ? sum / total : 0.0;
    }
}
