// split_halves: rows of f32 as sums of two f16, for matrix units: x · 2^e = high + low + rounding, e per row.
//
// Row r of `halves`: (2, width) f16, high parts first, then one vector whose first word is the f32 2^-e. width is that of x
// rounded up to kHalvesBlock, zeros after x. The row's largest magnitude is brought into [2^14, 2^15): nothing overflows,
// no part that matters is subnormal (some devices flush those), and |rounding| ≤ 2^-22 |x · 2^e|, whichever way the device
// rounds. A row depends on nothing but itself.
#ifndef SPLIT_HALVES_ARGS_H
#define SPLIT_HALVES_ARGS_H
#include "shared_types.h"
SHARED_BEGIN

SHARED_CONST uint kSplitX = 0u;      // (rows, x_stride) f32
SHARED_CONST uint kSplitHalves = 1u; // as above

SHARED_CONST uint kHalvesBlock = 32u;

SHARED_FUNCTION uint halves_width(uint width) {
    return (width + kHalvesBlock - 1u) / kHalvesBlock * kHalvesBlock;
}
SHARED_FUNCTION uint halves_vectors(uint width) { // of a row, 16 bytes each
    return halves_width(width) / 4u + 1u;
}

struct SplitHalvesArgs {
    uint width; // of x, a multiple of 8; zeros after what is used
};

SHARED_END
#endif
