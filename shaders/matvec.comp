// One team of LANES invocations computes OUTS outputs for ROWS rows: lane l owns the steps l, l + LANES, … of a weight row
// whatever the number of rows, so a row's bits never depend on its company. Memory-bound on GPUs.
// Grid: x, y fold the output groups, z counts tiles of ROWS rows. OUTS is a power of two.
// UNROLLED: row and output counts are fixed at build time and unrolled there, for compilers that would not.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "shared/matvec_args.h"
#include "shared/weight_format.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint LANES = 8;
layout(constant_id = 2) const uint TEAMS = 1;
layout(constant_id = 3) const uint FORMAT = kFormatBf16;
layout(constant_id = 4) const uint ADD = 0; // 1: y += instead of y =
#ifdef UNROLLED
const int ROWS = UNROLLED_ROWS;
const int OUTS = UNROLLED_OUTS;
#else
layout(constant_id = 5) const int ROWS = 1;
layout(constant_id = 6) const int OUTS = 4;
#endif
#define WEIGHT_BINDING kMatvecWeight
#include "include/reduce.glsl"
#include "include/weight.glsl"

layout(push_constant) uniform Push { MatvecArgs args; };
layout(std430, binding = kMatvecX) readonly buffer X { WIDE_VEC x[]; };
layout(std430, binding = kMatvecY) buffer Y { float y[]; };

// One level of the reduction tree. While a team holds several outputs, each half of the lanes keeps half of them, so that
// one exchange serves two outputs; the additions are those of lane_sum.
#define REDUCE_LEVEL(level)                                                                                            \
    if ((LANES >> level) >= 2u) {                                                                                      \
        uint distance = LANES >> (level + 1);                                                                          \
        if ((OUTS >> level) >= 2) {                                                                                    \
            bool upper = (lane & distance) != 0u;                                                                      \
            [[unroll]] for (int i = 0; i < (OUTS >> (level + 1)) * ROWS; ++i) {                                        \
                float kept = upper ? acc[i + (OUTS >> (level + 1)) * ROWS] : acc[i];                                   \
                float given = upper ? acc[i] : acc[i + (OUTS >> (level + 1)) * ROWS];                                  \
                precise float sum = kept + lane_exchange(given, distance);                                             \
                acc[i] = sum;                                                                                          \
            }                                                                                                          \
            if (upper) first_out += OUTS >> (level + 1);                                                               \
        } else {                                                                                                       \
            [[unroll]] for (int r = 0; r < ROWS; ++r) {                                                                \
                precise float sum = acc[r] + lane_exchange(acc[r], distance);                                          \
                acc[r] = sum;                                                                                          \
            }                                                                                                          \
            writes = writes && (lane & distance) == 0u;                                                                \
        }                                                                                                              \
    }

void main() {
    uint lane = lane_index();
    uint group = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * TEAMS + team_index();
    uint out0 = group * OUTS;
    uint row0 = gl_WorkGroupID.z * ROWS;

    uint w_row[OUTS];
    [[unroll]] for (int o = 0; o < OUTS; ++o) w_row[o] = min(out0 + o, args.n_out - 1u);
    uint x_base[ROWS];
    [[unroll]] for (int r = 0; r < ROWS; ++r) x_base[r] = min(row0 + r, args.n_rows - 1u) * args.x_row_stride;

    precise float acc[OUTS * ROWS];
    [[unroll]] for (int i = 0; i < OUTS * ROWS; ++i) acc[i] = 0.0;
    for (uint step = lane; step < args.k_steps; step += LANES) {
        WeightStep w[OUTS];
        [[unroll]] for (int o = 0; o < OUTS; ++o) w[o] = load_step(w_row[o], step, args.k_steps);
        [[unroll]] for (uint octet = 0u; octet < kOctets; ++octet) {
            vec4 xa[ROWS];
            vec4 xb[ROWS];
            [[unroll]] for (int r = 0; r < ROWS; ++r) {
                xa[r] = uintBitsToFloat(wide_uvec4(x[x_base[r] + x_of_a(step, octet)]));
                xb[r] = uintBitsToFloat(wide_uvec4(x[x_base[r] + x_of_b(step, octet)]));
            }
            [[unroll]] for (int o = 0; o < OUTS; ++o) {
                vec4 wa, wb;
                octet_weights(w[o], octet, wa, wb);
                [[unroll]] for (int r = 0; r < ROWS; ++r) {
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
    }

    int first_out = 0;  // of the outputs this lane ends up with
    bool writes = true; // one of the lanes that hold the same ones
    REDUCE_LEVEL(0)
    REDUCE_LEVEL(1)
    REDUCE_LEVEL(2)
    REDUCE_LEVEL(3)
    REDUCE_LEVEL(4)
    REDUCE_LEVEL(5)
    const int held = uint(OUTS) > LANES ? OUTS / int(LANES) : 1;
    for (int o = 0; o < held; ++o) {
        uint out_index = out0 + first_out + o;
        if (!writes || out_index >= args.n_out) continue;
        [[unroll]] for (int r = 0; r < ROWS; ++r) {
            if (row0 + r >= args.n_rows) continue;
            uint at = (row0 + r) * args.y_stride + args.first_out + out_index;
            precise float sum = acc[o * ROWS + r];
            if (ADD != 0u) sum = y[at] + sum;
            y[at] = sum;
        }
    }
}
