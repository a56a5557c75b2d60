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
const uint OWN_STEPS = kOctets == 1u ? 2u : 1u; // of which an invocation puts two octets of weights into a slab
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

    // Neighbours take neighbouring steps of a row, or the halves of one step far apart: whichever lies together.
    uint w_out = kOctets == 1u ? id / 2u : id % kMatmulTile;
    uint part = kOctets == 1u ? id % 2u : id / kMatmulTile;
    uint w_row = row_begin(min(out0 + w_out, args.n_out - 1u), args.k_steps);

    precise vec4 acc[OWN_ROWS];
    for (uint r = 0u; r < OWN_ROWS; ++r) acc[r] = vec4(0.0);
    for (uint step0 = 0u; step0 < args.k_steps; step0 += STEPS) {
        uint quad0 = x_of_a(step0, 0u), first = kOctets == 1u ? step0 + 2u * part : step0;
        // All that a slab takes is asked for before any of it is used, without branches: a GPU waits once, not for one after the other.
        RawStep raw[OWN_STEPS];
        X_PART x_parts[OWN_X];
        [[unroll]] for (uint j = 0u; j < OWN_STEPS; ++j) raw[j] = load_raw_step(w_row, min(first + j, args.k_steps - 1u), args.k_steps);
        [[unroll]] for (uint i = 0u; i < OWN_X; ++i) x_parts[i] = load_x(row0, quad0, i);
        [[unroll]] for (uint j = 0u; j < 2u; ++j) {
            uint step = first + j % OWN_STEPS, octet = kOctets == 1u ? 0u : 2u * part + j;
            bvec4 counts = bvec4(step < args.k_steps); // beyond the row are zeros
            vec4 wa, wb;
            octet_weights(scaled_step(raw[j % OWN_STEPS], min(step, args.k_steps - 1u)), octet, wa, wb);
            put_w(4u * (x_of_a(step, octet) - quad0), w_out, mix(vec4(0.0), wa, counts));
            put_w(4u * (x_of_b(step, octet) - quad0), w_out, mix(vec4(0.0), wb, counts));
        }
        [[unroll]] for (uint i = 0u; i < OWN_X; ++i) put_x(x_parts[i], quad0, i);
        barrier();
        if (busy) multiply_slabs(own_outs, own_rows, acc);
        barrier();
    }
    if (!busy) return;
    uint row1 = row0 + own_rows * OWN_ROWS, out1 = out0 + own_outs * 4u;
    float scales[OWN_ROWS];
    vec4 before[OWN_ROWS];
    [[unroll]] for (uint r = 0u; r < OWN_ROWS; ++r) {
        uint row = row1 + r < args.n_rows ? row1 + r : row1; // nobody else's, who writes it
        scales[r] = sums_scale(row);
        before[r] = vec4(0.0);
        if (ADD != 0u) {
            [[unroll]] for (uint o = 0u; o < 4u; ++o) before[r][o] = y[row * args.y_stride + args.first_out + (out1 + o < args.n_out ? out1 + o : out1)];
        }
    }
    [[unroll]] for (uint r = 0u; r < OWN_ROWS; ++r) {
        precise vec4 sums = acc[r] * scales[r];
        if (ADD != 0u) sums = before[r] + sums;
        acc[r] = sums;
    }
    [[unroll]] for (uint r = 0u; r < OWN_ROWS; ++r)
        [[unroll]] for (uint o = 0u; o < 4u; ++o)
            if (row1 + r < args.n_rows && out1 + o < args.n_out) y[(row1 + r) * args.y_stride + args.first_out + out1 + o] = acc[r][o];
}
