// Each invocation owns OUTS outputs of ROWS prompt rows and walks k alone and in order: nothing is shared or reduced, so
// one tile shape serves every prompt length bit for bit. Compute-bound; weights are reused over ROWS rows.
// Grid: x, y fold groups of LOCAL · OUTS outputs, z counts tiles of ROWS rows.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/matmul_args.h"
#include "shared/matvec_args.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint FORMAT = kFormatBf16;
layout(constant_id = 2) const uint ADD = 0; // 1: y += instead of y =
layout(constant_id = 3) const int ROWS = 8;
layout(constant_id = 4) const int OUTS = 2;
#include "include/weight.glsl"

layout(push_constant) uniform Push { MatmulArgs args; };
layout(std430, binding = kMatmulWeight) readonly buffer Weight { uvec4 weight[]; };
layout(std430, binding = kMatmulX) readonly buffer X { vec4 x[]; };
layout(std430, binding = kMatmulY) buffer Y { float y[]; };

void main() {
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint out0 = (group * gl_WorkGroupSize.x + gl_LocalInvocationID.x) * OUTS;
    uint row0 = gl_WorkGroupID.z * ROWS;
    if (out0 >= args.n_out) return;

    uint words = FORMAT == kFormatF32 ? 2u : 1u;
    uint w_base[OUTS];
    for (int o = 0; o < OUTS; ++o) w_base[o] = min(out0 + o, args.n_out - 1u) * args.k_blocks * words;
    uint x_base[ROWS];
    for (int r = 0; r < ROWS; ++r) x_base[r] = min(row0 + r, args.n_rows - 1u) * args.x_stride;
    precise float acc[OUTS * ROWS];
    for (int i = 0; i < OUTS * ROWS; ++i) acc[i] = 0.0;
    for (uint block = 0u; block < args.k_blocks; ++block) {
        vec4 wa[OUTS];
        vec4 wb[OUTS];
        for (int o = 0; o < OUTS; ++o) {
            uvec4 w = weight[w_base[o] + block * words];
            if (FORMAT == kFormatF32) {
                wa[o] = uintBitsToFloat(w);
                wb[o] = uintBitsToFloat(weight[w_base[o] + block * 2u + 1u]);
            } else {
                wa[o] = unpack_low(w, FORMAT);
                wb[o] = unpack_high(w, FORMAT);
            }
        }
        for (int r = 0; r < ROWS; ++r) {
            vec4 xa = x[x_base[r] + 2u * block];
            vec4 xb = x[x_base[r] + 2u * block + 1u];
            for (int o = 0; o < OUTS; ++o) {
                precise float a = acc[o * ROWS + r];
                a = fma(wa[o].x, xa.x, a);
                a = fma(wa[o].y, xa.y, a);
                a = fma(wa[o].z, xa.z, a);
                a = fma(wa[o].w, xa.w, a);
                a = fma(wb[o].x, xb.x, a);
                a = fma(wb[o].y, xb.y, a);
                a = fma(wb[o].z, xb.z, a);
                a = fma(wb[o].w, xb.w, a);
                acc[o * ROWS + r] = a;
            }
        }
    }
    for (int o = 0; o < OUTS; ++o) {
        for (int r = 0; r < ROWS; ++r) {
            if (out0 + o >= args.n_out || row0 + r >= args.n_rows) continue;
            uint at = (row0 + r) * args.y_stride + args.first_out + out0 + o;
            precise float sum = acc[o * ROWS + r];
            if (ADD != 0u) sum = y[at] + sum;
            y[at] = sum;
        }
    }
}
