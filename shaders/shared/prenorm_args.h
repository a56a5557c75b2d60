// prenorm: what the normed members of the mat-vec family do to x on their way through it, as a stage of its own: x · weight, and of
// each row the scale 1 / sqrt(mean(x²) + eps) that multiplies their finished sums. Zhang and Sennrich 2019, equation 4.
#ifndef PRENORM_ARGS_H
#define PRENORM_ARGS_H
#include "shared_types.h"
SHARED_BEGIN

SHARED_CONST uint kPrenormX = 0u;      // (rows, stride) f32
SHARED_CONST uint kPrenormWeight = 1u; // (stride) f32, zero beyond the width
SHARED_CONST uint kPrenormY = 2u;      // (n_rows, stride) f32
SHARED_CONST uint kPrenormScales = 3u; // (n_rows) f32

struct PrenormArgs {
    uint k_steps;     // of a row of the weights that will read y
    uint stride;      // vec4, of x and y
    uint x_first_row; // row r of y comes from row x_first_row + r · x_row_step of x
    uint x_row_step;
    uint norm_width;
    float norm_eps;
};

SHARED_END
#endif
