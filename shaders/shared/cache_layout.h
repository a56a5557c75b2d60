// How a paged K/V pool lies in its buffer: (n_kv_heads, n_pages) pages of page_size tokens of head_dim elements each.
// f16, f32: the elements alone, halves in pairs.
// q8_0: the codes, int8 (page_size, head_dim). A page of K goes on with the scales of both sides, (page_size,
// head_dim / 32) words: K's f16 scale in the lower half, V's in the upper. That way a token's words are its own even when
// head_dim is 32, an element takes 8.5 bits, and one fetch serves both sides.
// An element is code · scale, exact in f32; code is in [-127, 127], scale is a block's largest magnitude / 127 rounded up
// to f16. Scale NaN, codes 0: the block held a NaN or an infinity.
#ifndef CACHE_LAYOUT_H
#define CACHE_LAYOUT_H
#include "shared_types.h"
SHARED_BEGIN

SHARED_CONST uint kCacheF16 = 0u; // values of the specialisation constant CACHE_TYPE
SHARED_CONST uint kCacheF32 = 1u;
SHARED_CONST uint kCacheQ8 = 2u;

SHARED_CONST uint kCacheBlock = 32u; // neighbouring elements of one head that share a q8_0 scale

// What an op that reads or writes a pool is told of it; begins or goes on in its args.
#define CACHE_MEMBERS                                                                                                  \
    uint n_heads;                                                                                                      \
    uint n_kv_heads;                                                                                                   \
    uint pages_per_slot;                                                                                               \
    uint n_pages;   /* in the pool */                                                                                  \
    uint page_bits; /* log2 of the page size */

// Words per token and head: of elements, and of the scales after them.
SHARED_FUNCTION uint cache_element_words(uint type, uint head_dim) {
    return type == kCacheF32 ? head_dim : type == kCacheF16 ? head_dim / 2u : head_dim / 4u;
}
SHARED_FUNCTION uint cache_scale_words(uint type, bool is_k, uint head_dim) {
    return type == kCacheQ8 && is_k ? head_dim / kCacheBlock : 0u;
}

SHARED_END
#endif
