// qkv: RMSNorm, the joined q, k, v projection, rotation of q and k, and the append of k and v to the paged cache, in one
// stage. Rotation: Su et al. 2021, equation 34; weights lie so that the two elements of a rotated pair are neighbours.
#ifndef QKV_ARGS_H
#define QKV_ARGS_H
#include "cache_layout.h"
#include "matvec_args.h"
#include "row.h"
SHARED_BEGIN

// kMatvecY: (n_rows, n_heads + 2 · n_kv_heads, head_dim) f32, of which q is written.
SHARED_CONST uint kQkvRows = 4u;  // (n_rows) Row
SHARED_CONST uint kQkvTable = 5u; // (max_context, head_dim / 2, 2) f32: cos, sin
SHARED_CONST uint kQkvPages = 6u; // (slots, pages_per_slot) uint
SHARED_CONST uint kQkvK = 7u;     // (n_kv_heads, n_pages) pages of cache_layout.h, as uint; not q8_0
SHARED_CONST uint kQkvV = 8u;     // as K

struct QkvArgs {
    MATVEC_MEMBERS
    CACHE_MEMBERS
};

SHARED_END
#endif
