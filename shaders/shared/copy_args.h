// copy: to = from, in 16 bytes. Measures what the device's memory can do.
#ifndef COPY_ARGS_H
#define COPY_ARGS_H
#include "shared_types.h"
SHARED_BEGIN

SHARED_CONST uint kCopyFrom = 0u; // (n_vectors, 4) uint
SHARED_CONST uint kCopyTo = 1u;   // the same

struct CopyArgs {
    uint n_vectors; // of 16 bytes
    uint stride;    // invocations: each copies every stride-th vector
};

SHARED_END
#endif
