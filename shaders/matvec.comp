// One team of LANES invocations computes OUTS outputs for ROWS rows: lane l owns the 8-element blocks l, l + LANES, …
// whatever the number of rows, so a row's bits never depend on its company. Memory-bound on GPUs.
// Grid: x, y fold the output groups, z counts tiles of ROWS rows.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/matvec_args.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint LANES = 8;
layout(constant_id = 2) const uint TEAMS = 1;
layout(constant_id = 3) const uint FORMAT = kFormatBf16;
layout(constant_id = 4) const uint ADD = 0; // 1: y += instead of y =
layout(constant_id = 5) const int ROWS = 1;
layout(constant_id = 6) const int OUTS = 4;
#include "include/reduce.glsl"
#include "include/weight.glsl"

layout(push_constant) uniform Push { MatvecArgs args; };
layout(std430, binding = kMatvecWeight) readonly buffer Weight { uvec4 weight[]; };
layout(std430, binding = kMatvecX) readonly buffer X { vec4 x[]; };
layout(std430, binding = kMatvecY) buffer Y { float y[]; };

void main() {
    uint lane = lane_index();
    uint group = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * TEAMS + team_index();
    uint out0 = group * OUTS;
    uint row0 = gl_WorkGroupID.z * ROWS;

    uint words = FORMAT == kFormatF32 ? 2u : 1u; // uvec4 per block
    uint w_base[OUTS];
    for (int o = 0; o < OUTS; ++o) w_base[o] = min(out0 + o, args.n_out - 1u) * args.k_blocks * words;
    uint x_base[ROWS];
    for (int r = 0; r < ROWS; ++r) x_base[r] = min(row0 + r, args.n_rows - 1u) * args.x_row_stride;

    precise float acc[OUTS * ROWS];
    for (int i = 0; i < OUTS * ROWS; ++i) acc[i] = 0.0;
    for (uint block = lane; block < args.k_blocks; block += LANES) {
        vec4 xa[ROWS];
        vec4 xb[ROWS];
        for (int r = 0; r < ROWS; ++r) {
            xa[r] = x[x_base[r] + 2u * block];
            xb[r] = x[x_base[r] + 2u * block + 1u];
        }
        for (int o = 0; o < OUTS; ++o) {
            uvec4 w = weight[w_base[o] + block * words];
            vec4 wa, wb;
            if (FORMAT == kFormatF32) {
                wa = uintBitsToFloat(w);
                wb = uintBitsToFloat(weight[w_base[o] + block * 2u + 1u]);
            } else {
                wa = unpack_low(w, FORMAT);
                wb = unpack_high(w, FORMAT);
            }
            for (int r = 0; r < ROWS; ++r) {
                precise float a = acc[o * ROWS + r];
                a = fma(wa.x, xa[r].x, a);
                a = fma(wa.y, xa[r].y, a);
                a = fma(wa.z, xa[r].z, a);
                a = fma(wa.w, xa[r].w, a);
                a = fma(wb.x, xb[r].x, a);
                a = fma(wb.y, xb[r].y, a);
                a = fma(wb.z, xb[r].z, a);
                a = fma(wb.w, xb[r].w, a);
                acc[o * ROWS + r] = a;
            }
        }
    }
    for (int o = 0; o < OUTS; ++o) {
        for (int r = 0; r < ROWS; ++r) {
            precise float sum = lane_sum(acc[o * ROWS + r]);
            if (lane == 0u && out0 + o < args.n_out && row0 + r < args.n_rows) {
                uint at = (row0 + r) * args.y_stride + args.first_out + out0 + o;
                if (ADD != 0u) {
                    precise float total = y[at] + sum;
                    sum = total;
                }
                y[at] = sum;
            }
        }
    }
}
