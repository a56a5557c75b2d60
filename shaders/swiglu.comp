// Elementwise; x strides over one row's elements, y counts rows.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/swiglu_args.h"

layout(local_size_x = 64) in;

layout(push_constant) uniform Push { SwigluArgs args; };
layout(std430, binding = kSwigluGateUp) readonly buffer GateUp { float gate_up[]; };
layout(std430, binding = kSwigluY) writeonly buffer Y { float y[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    uint r = gl_WorkGroupID.y;
    if (i >= args.y_stride) return;
    precise float v = 0.0;
    if (i < args.width) {
        float gate = gate_up[(2u * r) * args.width + i];
        float up = gate_up[(2u * r + 1u) * args.width + i];
        v = gate / (1.0 + exp(-gate)) * up;
    }
    y[r * args.y_stride + i] = v;
}
