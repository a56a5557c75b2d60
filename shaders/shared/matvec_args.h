// Mat-vec family: y[r][o] (+)= Σ_k weight[o][k] · x[r][k], bitwise independent of how many rows share the pass.
// Its members (matvec, normed_matvec, qkv, gate_up) share the walk over the weights and differ in what becomes of the sums.
#ifndef MATVEC_ARGS_H
#define MATVEC_ARGS_H
#include "shared_types.h"
SHARED_BEGIN

SHARED_CONST uint kMatvecWeight = 0u; // (n_out) rows of shared/weight_format.h
SHARED_CONST uint kMatvecX = 1u;      // (rows, x_row_stride) f32; zero up to the last step's end
SHARED_CONST uint kMatvecY = 2u;      // (rows, y_stride) f32
SHARED_CONST uint kMatvecNorm = 3u;   // (x_row_stride) f32, zero beyond the width: weights of an RMSNorm that x goes through first;
                                      // or (n_rows) f32, where prenorm.comp has prepared x: the scales of its rows

// Row r of the pass is row x_first_row + r · x_row_step of x. GLSL knows no nested structs that C++ agrees with.
#define MATVEC_MEMBERS                                                                                                 \
    uint k_steps;      /* of a weight row */                                                                           \
    uint n_out;        /* weight rows in this shard */                                                                 \
    uint first_out;    /* where the shard's first row goes in y */                                                     \
    uint n_rows;                                                                                                       \
    uint x_row_stride; /* vec4 */                                                                                      \
    uint x_first_row;                                                                                                  \
    uint x_row_step;                                                                                                   \
    uint y_stride;     /* floats */                                                                                    \
    uint norm_width;   /* elements of x that the RMSNorm means over */                                                 \
    float norm_eps;

struct MatvecArgs {
    MATVEC_MEMBERS
};

SHARED_END
#endif
