// One token position going through one forward pass, as rows.comp and replay_rows.comp write it and every op reads it.
#ifndef ROW_H
#define ROW_H
#include "shared_types.h"
SHARED_BEGIN

SHARED_CONST uint kMaxDraftLen = 15u; // equals AUSPEX_MAX_DRAFT_LEN
SHARED_CONST uint kMaxPath = 16u;     // kMaxDraftLen + 1

// Keys are walked by position j = 0 … position: the key of position j lies at kv_index j below prefix_len, and at
// path[j - prefix_len] from there on, so that a chain and a tree give the same bits and siblings can share a position.
struct Row {
    uint token;
    uint slot;
    uint position;
    uint kv_index;   // where this row's own K and V go; equals path[position - prefix_len] when that exists
    uint prefix_len; // committed keys
    uint live;       // 0: computes garbage that nobody reads, writes no K/V
    uint path[kMaxPath];
    uint parent; // of a draft: the row in the target's pass of the token before it; else kNoRow: the token is the last that is known
    uint reserved; // 96 bytes a row: 8 rows are a multiple of every storage buffer alignment
};
SHARED_CONST uint kNoRow = 0xffffffffu;

SHARED_END
#endif
