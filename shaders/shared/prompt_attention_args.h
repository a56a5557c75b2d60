// prompt_attention: as attention, for rows that lie as replay_rows.comp writes them: the key of position j at index j. A
// workgroup takes neighbouring rows with all query heads of a KV head. Tiles as in FlashAttention (Dao et al. 2022).
#ifndef PROMPT_ATTENTION_ARGS_H
#define PROMPT_ATTENTION_ARGS_H
#include "attention_args.h" // for the bindings
SHARED_BEGIN

SHARED_CONST uint kPromptKeys = 32u; // of a tile; splits are multiples of it

// Queries (row, head of the group) of a workgroup: they fill 16 KiB of shared memory, or twice as many threads as scores.
SHARED_FUNCTION uint prompt_queries(uint head_dim) {
    return head_dim < 128u ? 64u : 32u;
}

struct PromptAttentionArgs {
    uint n_heads;
    uint n_kv_heads;
    uint pages_per_slot;
    uint n_pages;
    uint page_bits;
    uint split;
    uint max_splits;
    float scale;
    uint n_rows;
};

SHARED_END
#endif
