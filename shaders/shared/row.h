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
    uint reserved[2]; // 96 bytes a row: 8 rows are a multiple of every storage buffer alignment
};

// Draft rows lie in regions, one per draft pass, each at a multiple of 8 rows (768 bytes) so that it can be bound alone:
// 2 · batch rows for the first pass (the first of each pair catches the draft cache up), batch rows for each later one.
SHARED_FUNCTION uint draft_pass_first_row(uint batch, uint step) {
    return step == 0u ? 0u : (2u * batch + 7u) / 8u * 8u + (step - 1u) * ((batch + 7u) / 8u * 8u);
}

SHARED_END
#endif
