// rope_append: rotates q in place, rotates k and appends it to the paged cache, appends v: what qkv does in one stage, for
// prompts and for q8_0 caches. Su et al. 2021, equation 34; elements 2i and 2i + 1 of a head are a pair.
#ifndef ROPE_APPEND_ARGS_H
#define ROPE_APPEND_ARGS_H
#include "cache_layout.h"
#include "row.h"
SHARED_BEGIN

SHARED_CONST uint kRopeQkv = 0u;   // (n_rows, n_heads + 2 · n_kv_heads, head_dim) f32; q rotated in place
SHARED_CONST uint kRopeRows = 1u;  // (n_rows) Row
SHARED_CONST uint kRopeTable = 2u; // (max_context, head_dim / 2, 2) f32: cos, sin
SHARED_CONST uint kRopePages = 3u; // (slots, pages_per_slot) uint
SHARED_CONST uint kRopeK = 4u;     // (n_kv_heads, n_pages) pages of cache_layout.h, as uint
SHARED_CONST uint kRopeV = 5u;     // as K

struct RopeAppendArgs {
    uint n_rows;
    CACHE_MEMBERS
};

SHARED_END
#endif
