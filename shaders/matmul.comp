// A workgroup multiplies a tile of outputs by a tile of prompt rows, slab by slab of k through shared memory, where weights
// are decoded once per tile. An invocation owns 4 outputs of 8 rows and adds in order of k: one tile shape serves every
// prompt length bit for bit. Grid: x counts tiles of rows, so that those that share weights run together; y of outputs.
// The slabs hold f32, or HALVES: include/slabs_of_{floats,halves}.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "shared/matmul_args.h"
#include "shared/weight_format.h"

layout(local_size_x = 128) in; // what every device has
layout(constant_id = 0) const uint WEIGHT_LAYOUT = kFormatBf16;
layout(constant_id = 1) const uint ADD = 0; // 1: y += instead of y =
#define WEIGHT_BINDING kMatmulWeight
#include "include/weight.glsl"

layout(push_constant) uniform Push { MatmulArgs args; };
layout(std430, binding = kMatmulY) buffer Y { float y[]; };

const uint DEPTH = 32u;               // k per slab
const uint STEPS = 4u / kOctets;      // of a weight row per slab
const uint QUADS = kMatmulTile / 4u;  // of outputs or rows
const uint OWN_ROWS = 8u;
#ifdef HALVES
#include "include/slabs_of_halves.glsl"
#else
#include "include/slabs_of_floats.glsl"
#endif

void main() {
    uint id = gl_LocalInvocationID.x;
    uint row0 = gl_WorkGroupID.x * kMatmulTile, out0 = gl_WorkGroupID.y * kMatmulTile;
    uint own_outs = id % QUADS, own_rows = id / QUADS; // a quad, two quads
    bool busy = row0 + own_rows * OWN_ROWS < args.n_rows && out0 + own_outs * 4u < args.n_out;

    precise vec4 acc[OWN_ROWS];
    for (uint r = 0u; r < OWN_ROWS; ++r) acc[r] = vec4(0.0);
    for (uint step0 = 0u; step0 < args.k_steps; step0 += STEPS) {
        for (uint i = id; i < kMatmulTile * 2u; i += gl_WorkGroupSize.x) { // two octets of a row of weights
            // Neighbours take neighbouring steps of a row, or the halves of one step far apart: whichever lies together.
            uint o = kOctets == 1u ? i / 2u : i % kMatmulTile;
            uint part = kOctets == 1u ? i % 2u : i / kMatmulTile;
            for (uint j = 0u; j < 2u; ++j) {
                uint step = kOctets == 1u ? step0 + 2u * part + j : step0;
                uint octet = kOctets == 1u ? 0u : 2u * part + j;
                vec4 a = vec4(0.0), b = vec4(0.0); // beyond the row
                if (step < args.k_steps) octet_weights(load_step(row_begin(min(out0 + o, args.n_out - 1u), args.k_steps), step, args.k_steps), octet, a, b);
                put_w(4u * (x_of_a(step, octet) - x_of_a(step0, 0u)), o, a);
                put_w(4u * (x_of_b(step, octet) - x_of_a(step0, 0u)), o, b);
            }
        }
        stage_x(row0, x_of_a(step0, 0u));
        barrier();
        if (busy) multiply_slabs(own_outs, own_rows, acc);
        barrier();
    }
    if (!busy) return;
    [[unroll]] for (uint r = 0u; r < OWN_ROWS; ++r) {
        uint row = row0 + own_rows * OWN_ROWS + r;
        float scale = sums_scale(min(row, args.n_rows - 1u));
        for (uint o = 0u; o < 4u; ++o) {
            if (row >= args.n_rows || out0 + 4u * own_outs + o >= args.n_out) continue;
            uint at = row * args.y_stride + args.first_out + out0 + 4u * own_outs + o;
            precise float sum = acc[r][o] * scale;
            if (ADD != 0u) sum = y[at] + sum;
            y[at] = sum;
        }
    }
}
