// Plain 16-byte loads and stores, neighbours by neighbouring invocations.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/copy_args.h"

layout(local_size_x = 128) in;

layout(push_constant) uniform Push { CopyArgs args; };
layout(std430, binding = kCopyFrom) readonly buffer From { uvec4 from[]; };
layout(std430, binding = kCopyTo) writeonly buffer To { uvec4 to[]; };

void main() {
    for (uint i = gl_GlobalInvocationID.x; i < args.n_vectors; i += args.stride) to[i] = from[i];
}
