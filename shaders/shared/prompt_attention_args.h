// prompt_attention: as attention, for rows that lie as replay_rows.comp writes them: the key of position j at index j. A
// workgroup takes neighbouring rows with all query heads of a KV head. Tiles as in FlashAttention (Dao et al. 2022).
#ifndef PROMPT_ATTENTION_ARGS_H
#define PROMPT_ATTENTION_ARGS_H
#include "attention_args.h" // whose args and bindings it takes
SHARED_BEGIN

SHARED_CONST uint kPromptKeys = 32u; // of a tile; splits are multiples of it

// Queries (row, head of the group) of a workgroup: they fill 16 KiB of shared memory, or twice as many threads as scores.
SHARED_FUNCTION uint prompt_queries(uint head_dim) {
    return head_dim < 128u ? 64u : 32u;
}

// The same on matrix units, for an f16 cache: a split's keys at once, 32 KiB of shared memory.
SHARED_CONST uint kMatrixQueries = 32u;
SHARED_CONST uint kMatrixKeys = 128u; // = split

SHARED_END
#endif
