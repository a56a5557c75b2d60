// Mat-vec family: y[r][o] (+)= Σ_k weight[o][k] · x[r][k], bitwise independent of how many rows share the pass.
#ifndef MATVEC_ARGS_H
#define MATVEC_ARGS_H
#include "shared_types.h"
SHARED_BEGIN

SHARED_CONST uint kMatvecWeight = 0u; // (n_out, k_blocks · 8) f32, f16 or bf16; rows padded with zeros to 8 elements
SHARED_CONST uint kMatvecX = 1u;      // (rows, k_blocks · 8) f32; padding is zero
SHARED_CONST uint kMatvecY = 2u;      // (rows, y_stride) f32

SHARED_CONST uint kFormatF32 = 0u;  // equal DType
SHARED_CONST uint kFormatF16 = 1u;
SHARED_CONST uint kFormatBf16 = 2u;

struct MatvecArgs {
    uint k_blocks;     // of 8 elements
    uint n_out;        // weight rows in this shard
    uint first_out;    // where the shard's first row goes in y
    uint n_rows;
    uint x_row_stride; // vec4
    uint y_stride;     // floats
};

SHARED_END
#endif
