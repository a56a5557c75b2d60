#version 450
// Asks for as much as its constants say: N invocations, and 16·N bytes of shared memory, 64 more where N is above 100.
layout(local_size_x_id = 1, local_size_y = 2) in;
layout(constant_id = 0) const uint N = 8;

shared uvec2 pairs[N * 2];
shared uint more[N > 100 ? 16 : 1];

layout(set = 0, binding = 0) buffer Out { uint result[]; };

void main() {
    pairs[gl_LocalInvocationIndex % N] = gl_LocalInvocationID.xy;
    if (gl_LocalInvocationIndex == 0) more[0] = 0;
    barrier();
    result[gl_LocalInvocationIndex] = pairs[0].x + more[0];
}
