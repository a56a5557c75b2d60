// matmul: the prompt's y[r][o] (+)= Σ_k weight[o][k] · x[r][k]. One tile shape, so a row's bits never depend on the others.
#ifndef MATMUL_ARGS_H
#define MATMUL_ARGS_H
#include "shared_types.h"
SHARED_BEGIN

SHARED_CONST uint kMatmulWeight = 0u; // (n_out) rows of shared/weight_format.h
SHARED_CONST uint kMatmulX = 1u;      // (rows, x_stride) f32; zero up to the last step's end
SHARED_CONST uint kMatmulY = 2u;      // (rows, y_stride) f32

SHARED_CONST uint kMatmulTile = 64u; // outputs and rows of a workgroup without matrix units

// On matrix units so many blocks of 32 k of x and of weights lie in shared memory, f16vec4 from row to row: 16-byte aligned, and 8 rows in
// different banks. matrix_shared_bytes: of 2 · rows by 2 · outs with so many f16 parts, and of four tiles of (m, n) results.
#define MATRIX_STRIDE(blocks) (8u * (blocks) + 2u)
SHARED_FUNCTION uint matrix_shared_bytes(uint x_parts, uint w_parts, uint rows, uint outs, uint blocks, uint m, uint n) {
    return 8u * MATRIX_STRIDE(blocks) * 2u * (x_parts * rows + w_parts * outs) + 4u * 4u * m * n;
}

struct MatmulArgs {
    uint k_steps;  // of a weight row
    uint n_out;    // weight rows in this shard
    uint first_out;
    uint n_rows;
    uint x_stride; // vec4
    uint y_stride; // floats
};

SHARED_END
#endif
