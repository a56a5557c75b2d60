// rmsnorm: y = x / sqrt(mean(x²) + eps) · weight, rows apart. Zhang and Sennrich 2019, equation 4.
#ifndef RMSNORM_ARGS_H
#define RMSNORM_ARGS_H
#include "shared_types.h"
SHARED_BEGIN

SHARED_CONST uint kRmsnormX = 0u;      // (rows, stride) f32
SHARED_CONST uint kRmsnormWeight = 1u; // (width) f32
SHARED_CONST uint kRmsnormY = 2u;      // (rows, stride) f32, padding written as zero

struct RmsnormArgs {
    uint width;
    uint stride;      // floats, of x and y; width rounded up to 8
    uint x_first_row; // row r of y comes from row x_first_row + r · x_row_step of x
    uint x_row_step;
    float eps;
};

SHARED_END
#endif
