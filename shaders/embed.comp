// Gathers table rows: one invocation per (octet, row), so that all of a row's octets are asked for together. A shard writes the rows
// whose token it holds; the first shard also zeroes the rows that no shard holds.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/embed_args.h"
#include "shared/weight_format.h"

layout(local_size_x = kEmbedThreads) in;
layout(constant_id = 0) const uint WEIGHT_LAYOUT = kFormatBf16;
#define WEIGHT_BINDING kEmbedWeight
#include "include/weight.glsl"

layout(push_constant) uniform Push { EmbedArgs args; };
layout(std430, binding = kEmbedRows) readonly buffer Rows { Row rows[]; };
layout(std430, binding = kEmbedX) writeonly buffer X { float x[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    uint r = gl_WorkGroupID.y;
    uint token = rows[r].token;
    bool here = rows[r].live != 0u && token >= args.first_token && token - args.first_token < args.n_tokens;
    if (!here && !(args.first_token == 0u && (rows[r].live == 0u || token >= args.table_tokens))) return;
    if (i >= args.table_steps * kOctets) return;
    uint step = i / kOctets, octet = i % kOctets;
    vec4 a = vec4(0.0), b = vec4(0.0);
    if (here) octet_weights(load_step(row_begin(token - args.first_token, args.table_steps), step, args.table_steps), octet, a, b);
    uint at_a = 4u * x_of_a(step, octet), at_b = 4u * x_of_b(step, octet);
    for (uint e = 0u; e < 4u; ++e) {
        if (at_a + e < args.width) x[r * args.x_stride + at_a + e] = a[e];
        if (at_b + e < args.width) x[r * args.x_stride + at_b + e] = b[e];
    }
}
