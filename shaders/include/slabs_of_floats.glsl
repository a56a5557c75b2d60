// What matmul multiplies, as f32: slabs of weights and of x, which is read as it is.
layout(std430, binding = kMatmulX) readonly buffer X { vec4 x[]; }; // (rows, x_stride)

// (k, output) and (k, row): 16 KiB together, as much as every device has. Quads of k lie exchanged (`place`), so that
// neither the invocations that stage nor those that multiply meet in a bank.
shared vec4 w_slab[DEPTH * QUADS];
shared vec4 x_slab[DEPTH * QUADS];
uint place(uint k, uint quad) { return k * QUADS + (quad ^ (k / 4u & 7u)); }

// Weights k to k + 3 of a slab.
void put_w(uint k, uint o, vec4 four) {
    for (uint i = 0u; i < 4u; ++i) w_slab[place(k + i, o / 4u)][o % 4u] = four[i];
}

// Of the slab that begins at quad0 of every row, part i of an invocation's. Beyond the row are zeros.
#define X_PART vec4
const uint OWN_X = DEPTH / 4u * kMatmulTile / gl_WorkGroupSize.x;
uint x_place(uint i) { return i * gl_WorkGroupSize.x + gl_LocalInvocationID.x; }
vec4 load_x(uint row0, uint quad0, uint i) {
    uint k_quad = x_place(i) % (DEPTH / 4u), r = x_place(i) / (DEPTH / 4u);
    return x[min(row0 + r, args.n_rows - 1u) * args.x_stride + min(quad0 + k_quad, x_of_a(args.k_steps, 0u) - 1u)];
}
void put_x(vec4 four, uint quad0, uint i) {
    uint k_quad = x_place(i) % (DEPTH / 4u), r = x_place(i) / (DEPTH / 4u);
    four = mix(vec4(0.0), four, bvec4(quad0 + k_quad < x_of_a(args.k_steps, 0u)));
    for (uint j = 0u; j < 4u; ++j) x_slab[place(4u * k_quad + j, r / 4u)][r % 4u] = four[j];
}

// acc[r]: row r of an invocation's, times its quad of outputs.
void multiply_slabs(uint own_outs, uint own_rows, inout vec4 acc[OWN_ROWS]) {
    for (uint k = 0u; k < DEPTH; ++k) {
        vec4 w = w_slab[place(k, own_outs)];
        vec4 xa = x_slab[place(k, 2u * own_rows)], xb = x_slab[place(k, 2u * own_rows + 1u)];
        [[unroll]] for (uint r = 0u; r < 4u; ++r) {
            acc[r] = fma(w, vec4(xa[r]), acc[r]);
            acc[4u + r] = fma(w, vec4(xb[r]), acc[4u + r]);
        }
    }
}

float sums_scale(uint row) { return 1.0; }
