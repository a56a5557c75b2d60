// What matmul multiplies, as halves in pairs of k, summed in f32: 0.75 bytes of shared memory for a product instead of 1.5, and
// room for twice as many workgroups. x comes from split_halves, whose low parts are left out, so both factors are rounded by at
// most 2^-12; weights are scaled as on matrix units (matrix/matmul_matrix.comp has the analysis). Halves are unpacked by what
// every device has, and multiplied as f32: where products take halves directly a compiler finds that out.
#include "shared/split_halves_args.h"
#include "include/rounded_to_half.glsl"
layout(std430, binding = kMatmulX) readonly buffer X { uvec4 x[]; }; // (rows, x_vectors()) of split_halves

// (pair of k, output) and (pair of k, row), four to an element, exchanged as f32's are.
shared uvec4 w_slab[DEPTH / 2u * QUADS];
shared uvec4 x_slab[DEPTH / 2u * QUADS];
uint place(uint pair, uint quad) { return pair * QUADS + (quad ^ (pair / 2u & 7u)); }

const float W_SCALE = FORMAT == kFormatF16 ? 1.0 : 64.0;

// Weights k to k + 3 of a slab.
void put_w(uint k, uint o, vec4 four) {
    precise vec4 scaled = four * W_SCALE;
    vec4 rounded = rounded_to_half(scaled);
    w_slab[place(k / 2u, o / 4u)][o % 4u] = packHalf2x16(rounded.xy);
    w_slab[place(k / 2u + 1u, o / 4u)][o % 4u] = packHalf2x16(rounded.zw);
}

uint x_vectors() { return halves_vectors(8u * kOctets * args.k_steps); } // of a row

// Of the slab that begins at quad0 of every row, part i of an invocation's. A row's last slab is padded with zeros.
#define X_PART uvec4
const uint OWN_X = DEPTH / 8u * kMatmulTile / gl_WorkGroupSize.x;
uint x_place(uint i) { return i * gl_WorkGroupSize.x + gl_LocalInvocationID.x; }
uvec4 load_x(uint row0, uint quad0, uint i) {
    uint k_eight = x_place(i) % (DEPTH / 8u), r = x_place(i) / (DEPTH / 8u);
    return x[min(row0 + r, args.n_rows - 1u) * x_vectors() + quad0 / 2u + k_eight];
}
void put_x(uvec4 pairs, uint quad0, uint i) {
    uint k_eight = x_place(i) % (DEPTH / 8u), r = x_place(i) / (DEPTH / 8u);
    for (uint j = 0u; j < 4u; ++j) x_slab[place(4u * k_eight + j, r / 4u)][r % 4u] = pairs[j];
}

// acc[r]: row r of an invocation's, times its quad of outputs.
void multiply_slabs(uint own_outs, uint own_rows, inout vec4 acc[OWN_ROWS]) {
    for (uint pair = 0u; pair < DEPTH / 2u; ++pair) {
        uvec4 w = w_slab[place(pair, own_outs)];
        vec2 w0 = unpackHalf2x16(w.x), w1 = unpackHalf2x16(w.y), w2 = unpackHalf2x16(w.z), w3 = unpackHalf2x16(w.w);
        [[unroll]] for (uint half_rows = 0u; half_rows < 2u; ++half_rows) {
            uvec4 four = x_slab[place(pair, 2u * own_rows + half_rows)];
            [[unroll]] for (uint r = 0u; r < 4u; ++r) {
                vec2 v = unpackHalf2x16(four[r]);
                acc[4u * half_rows + r] = fma(vec4(w0.x, w1.x, w2.x, w3.x), vec4(v.x), acc[4u * half_rows + r]);
                acc[4u * half_rows + r] = fma(vec4(w0.y, w1.y, w2.y, w3.y), vec4(v.y), acc[4u * half_rows + r]);
            }
        }
    }
}

// Exact: powers of two.
float sums_scale(uint row) { return uintBitsToFloat(x[(row + 1u) * x_vectors() - 1u].x) / W_SCALE; }
