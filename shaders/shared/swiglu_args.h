// swiglu: y = silu(gate) · up. Shazeer 2020, equation 6.
#ifndef SWIGLU_ARGS_H
#define SWIGLU_ARGS_H
#include "shared_types.h"
SHARED_BEGIN

SHARED_CONST uint kSwigluGateUp = 0u; // (n_rows, 2 · width) f32: gates and ups, in pairs or apart
SHARED_CONST uint kSwigluY = 1u;      // (n_rows, y_stride) f32, padding written as zero

struct SwigluArgs {
    uint n_rows;
    uint width;
    uint y_stride;  // width rounded up to 8
    uint step;      // from a gate to the next
    uint up_offset; // from a gate to its up
};

SHARED_END
#endif
