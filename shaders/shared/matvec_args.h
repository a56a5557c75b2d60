// Mat-vec family: y[r][o] (+)= Σ_k weight[o][k] · x[r][k], bitwise independent of how many rows share the pass.
#ifndef MATVEC_ARGS_H
#define MATVEC_ARGS_H
#include "shared_types.h"
SHARED_BEGIN

SHARED_CONST uint kMatvecWeight = 0u; // (n_out) rows of shared/weight_format.h
SHARED_CONST uint kMatvecX = 1u;      // (rows, x_row_stride) f32; zero up to the last step's end
SHARED_CONST uint kMatvecY = 2u;      // (rows, y_stride) f32

struct MatvecArgs {
    uint k_steps;      // of a weight row
    uint n_out;        // weight rows in this shard
    uint first_out;    // where the shard's first row goes in y
    uint n_rows;
    uint x_row_stride; // vec4
    uint y_stride;     // floats
};

SHARED_END
#endif
