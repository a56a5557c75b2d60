// Each invocation owns OUTS outputs of ROWS prompt rows and walks k alone and in order: nothing is shared or reduced, so
// one tile shape serves every prompt length bit for bit. Compute-bound; weights are reused over ROWS rows.
// Grid: x, y fold groups of LOCAL · OUTS outputs, z counts tiles of ROWS rows.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "shared/matmul_args.h"
#include "shared/weight_format.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint FORMAT = kFormatBf16;
layout(constant_id = 2) const uint ADD = 0; // 1: y += instead of y =
layout(constant_id = 3) const int ROWS = 8;
layout(constant_id = 4) const int OUTS = 2;
#define WEIGHT_BINDING kMatmulWeight
#include "include/weight.glsl"

layout(push_constant) uniform Push { MatmulArgs args; };
layout(std430, binding = kMatmulX) readonly buffer X { vec4 x[]; };
layout(std430, binding = kMatmulY) buffer Y { float y[]; };

void main() {
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint out0 = (group * gl_WorkGroupSize.x + gl_LocalInvocationID.x) * OUTS;
    uint row0 = gl_WorkGroupID.z * ROWS;
    if (out0 >= args.n_out) return;

    uint w_row[OUTS];
    for (int o = 0; o < OUTS; ++o) w_row[o] = min(out0 + o, args.n_out - 1u);
    uint x_base[ROWS];
    for (int r = 0; r < ROWS; ++r) x_base[r] = min(row0 + r, args.n_rows - 1u) * args.x_stride;
    precise float acc[OUTS * ROWS];
    for (int i = 0; i < OUTS * ROWS; ++i) acc[i] = 0.0;
    for (uint step = 0u; step < args.k_steps; ++step) {
        WeightStep w[OUTS];
        for (int o = 0; o < OUTS; ++o) w[o] = load_step(w_row[o], step, args.k_steps);
        [[unroll]] for (uint octet = 0u; octet < kOctets; ++octet) {
            vec4 wa[OUTS];
            vec4 wb[OUTS];
            for (int o = 0; o < OUTS; ++o) octet_weights(w[o], octet, wa[o], wb[o]);
            for (int r = 0; r < ROWS; ++r) {
                vec4 xa = x[x_base[r] + x_of_a(step, octet)];
                vec4 xb = x[x_base[r] + x_of_b(step, octet)];
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
