// The noise of the engine for given random words: E and the uniform as sampling computes them, and Philox itself.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "include/random.glsl"

layout(local_size_x = 64) in;
layout(constant_id = 0) const uint N_WORDS = 1;
layout(constant_id = 1) const uint N_COUNTERS = 1;
layout(constant_id = 2) const uint KEY_LOW = 0;
layout(constant_id = 3) const uint KEY_HIGH = 0;

layout(std430, binding = 0) readonly buffer Words { uint words[]; };        // (n_words)
layout(std430, binding = 1) writeonly buffer Results { float results[]; };  // (n_words, 2): exponential, uniform
layout(std430, binding = 2) readonly buffer Counters { uvec4 counters[]; }; // (n_counters)
layout(std430, binding = 3) writeonly buffer Blocks { uvec4 blocks[]; };    // (n_counters)

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < N_WORDS) {
        results[2u * i] = exponential(words[i]);
        results[2u * i + 1u] = uniform01(words[i]);
    }
    if (i < N_COUNTERS) blocks[i] = philox(counters[i], uvec2(KEY_LOW, KEY_HIGH));
}
