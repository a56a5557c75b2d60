// matmul: the prompt's y[r][o] (+)= Σ_k weight[o][k] · x[r][k]. One tile shape, so a row's bits never depend on the others.
#ifndef MATMUL_ARGS_H
#define MATMUL_ARGS_H
#include "shared_types.h"
SHARED_BEGIN

SHARED_CONST uint kMatmulWeight = 0u; // (n_out, k_blocks · 8) f32, f16 or bf16; rows padded with zeros to 8 elements
SHARED_CONST uint kMatmulX = 1u;      // (rows, k_blocks · 8) f32; padding is zero
SHARED_CONST uint kMatmulY = 2u;      // (rows, y_stride) f32

struct MatmulArgs {
    uint k_blocks; // of 8 elements
    uint n_out;    // weight rows in this shard
    uint first_out;
    uint n_rows;
    uint x_stride; // vec4
    uint y_stride; // floats
};

SHARED_END
#endif
