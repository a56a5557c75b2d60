// Gathers table rows: one workgroup per row, invocations stride over 8-element blocks. A shard writes the rows whose
// token it holds; the first shard also zeroes the rows that no shard holds.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/embed_args.h"
#include "shared/matvec_args.h"

layout(local_size_x = 64) in;
layout(constant_id = 0) const uint FORMAT = kFormatBf16;
#include "include/weight.glsl"

layout(push_constant) uniform Push { EmbedArgs args; };
layout(std430, binding = kEmbedTable) readonly buffer Table { uvec4 table[]; };
layout(std430, binding = kEmbedRows) readonly buffer Rows { Row rows[]; };
layout(std430, binding = kEmbedX) writeonly buffer X { float x[]; };

void main() {
    uint r = gl_WorkGroupID.x;
    uint token = rows[r].token;
    bool here = rows[r].live != 0u && token >= args.first_token && token - args.first_token < args.n_tokens;
    if (!here && !(args.first_token == 0u && (rows[r].live == 0u || token >= args.table_tokens))) return;
    uint words = FORMAT == kFormatF32 ? 2u : 1u;
    uint base = (token - args.first_token) * args.table_blocks * words;
    for (uint block = gl_LocalInvocationID.x; block < args.table_blocks; block += gl_WorkGroupSize.x) {
        vec4 low = vec4(0.0), high = vec4(0.0);
        if (here && FORMAT == kFormatF32) {
            low = uintBitsToFloat(table[base + 2u * block]);
            high = uintBitsToFloat(table[base + 2u * block + 1u]);
        } else if (here) {
            uvec4 w = table[base + block];
            low = unpack_low(w, FORMAT);
            high = unpack_high(w, FORMAT);
        }
        for (uint i = 0u; i < 8u; ++i)
            if (8u * block + i < args.width) x[r * args.x_stride + 8u * block + i] = i < 4u ? low[i] : high[i - 4u];
    }
}
