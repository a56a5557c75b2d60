// Elementwise; x strides over one row's elements, y counts rows.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/swiglu_args.h"
#include "include/swiglu.glsl"

layout(local_size_x = 64) in;

layout(push_constant) uniform Push { SwigluArgs args; };
layout(std430, binding = kSwigluGateUp) readonly buffer GateUp { float gate_up[]; };
layout(std430, binding = kSwigluY) writeonly buffer Y { float y[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    uint r = gl_WorkGroupID.y;
    if (i >= args.y_stride) return;
    uint gate = 2u * r * args.width + i * args.step;
    y[r * args.y_stride + i] = i < args.width ? swiglu(gate_up[gate], gate_up[gate + args.up_offset]) : 0.0;
}
