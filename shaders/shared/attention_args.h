// attention: softmax(q · K) · V over one split of one row's keys, for the query heads that share a KV head.
// combine: joins the splits, unless the last workgroup of attention to be done with a row's head does. Online softmax,
// Milakov and Gimelshein 2018; splits as in Flash-Decoding.
#ifndef ATTENTION_ARGS_H
#define ATTENTION_ARGS_H
#include "cache_layout.h"
#include "row.h"
SHARED_BEGIN

SHARED_CONST uint kAttentionQkv = 0u;      // (n_rows, n_heads + 2 · n_kv_heads, head_dim) f32; q comes first
SHARED_CONST uint kAttentionRows = 1u;     // (n_rows) Row
SHARED_CONST uint kAttentionPages = 2u;    // (slots, pages_per_slot) uint
SHARED_CONST uint kAttentionK = 3u;        // (n_kv_heads, n_pages) pages of cache_layout.h, as uint
SHARED_CONST uint kAttentionV = 4u;        // as K
SHARED_CONST uint kAttentionPartials = 5u; // (n_rows, n_heads, max_splits, head_dim + 2) f32: Σ p·v, max, Σ p
SHARED_CONST uint kAttentionY = 6u;        // (n_rows, n_heads, head_dim) f32, when attention combines
SHARED_CONST uint kAttentionDone = 7u;     // (n_rows, n_kv_heads) uint: splits that are written; 0 between passes

struct AttentionArgs {
    CACHE_MEMBERS
    uint split;      // keys per split
    uint max_splits; // partials' stride
    float scale;     // 1 / sqrt(head_dim)
    uint n_rows;     // of the pass: the last tile of rows ends there
    uint tile_rows;  // rows of a workgroup; prompt_attention has its own
};

SHARED_CONST uint kCombinePartials = 0u; // as above
SHARED_CONST uint kCombineRows = 1u;     // (n_rows) Row
SHARED_CONST uint kCombineY = 2u;        // (n_rows, n_heads, head_dim) f32

struct CombineArgs {
    uint n_heads;
    uint head_dim;
    uint split;
    uint max_splits;
};

SHARED_END
#endif
