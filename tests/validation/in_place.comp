// Doubles a buffer in place: one binding that is both read and written, as rope_append has.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/swiglu_args.h"

layout(local_size_x = 64) in;

layout(push_constant) uniform Push { SwigluArgs args; };
layout(std430, binding = 0) buffer Values { float values[]; }; // (width) f32

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < args.width) values[i] = 2.0 * values[i];
}
