// random_fill: random weights straight into the device's format (weight_format.h), of mean 0 and the same spread in every
// format. Codes are random bits; scales are of one size or near it. What lies after the last element of a row is 0.
#ifndef RANDOM_FILL_ARGS_H
#define RANDOM_FILL_ARGS_H
#include "shared_types.h"
SHARED_BEGIN

SHARED_CONST uint kRandomFillRows = 0u; // (n_rows, row_vectors, 4) uint

struct RandomFillArgs {
    uint n_rows;
    uint first_row;   // of the shard, in its tensor
    uint cols;        // elements
    uint steps;       // device_steps
    uint row_vectors; // of 16 bytes
    uint seed_low;    // differs from tensor to tensor
    uint seed_high;
    float spread;     // standard deviation of a weight
};

SHARED_END
#endif
