// The noise of the engine for given random words: E and the uniform as sampling computes them, and Philox itself.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "include/random.glsl"

layout(local_size_x = 64) in;

layout(push_constant) uniform Push { uint n_words, n_counters, key_low, key_high; };
layout(std430, binding = 0) readonly buffer Words { uint words[]; };       // (n_words)
layout(std430, binding = 1) writeonly buffer Results { float results[]; }; // (n_words, 2): exponential, uniform
layout(std430, binding = 2) readonly buffer Counters { uvec4 counters[]; }; // (n_counters)
layout(std430, binding = 3) writeonly buffer Blocks { uvec4 blocks[]; };   // (n_counters)

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < n_words) {
        results[2u * i] = exponential(words[i]);
        results[2u * i + 1u] = uniform01(words[i]);
    }
    if (i < n_counters) blocks[i] = philox(counters[i], uvec2(key_low, key_high));
}
