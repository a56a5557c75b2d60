// replay_rows: rows for tokens that are already known: prompt chunks and draft catch-up. One workgroup.
#ifndef REPLAY_ROWS_ARGS_H
#define REPLAY_ROWS_ARGS_H
#include "row.h"
SHARED_BEGIN

SHARED_CONST uint kReplayList = 0u;    // (2 · n_rows) uint: slot (kNoSlot pads), position
SHARED_CONST uint kReplayHistory = 1u; // (slots, max_context) uint
SHARED_CONST uint kReplayRows = 2u;    // (n_rows) Row
SHARED_CONST uint kReplayCounts = 3u;  // 3 uint: attention grid

struct ReplayRowsArgs {
    uint n_rows;
    uint history_stride;
    uint split;
    uint n_kv_heads;
    uint attention_rows; // rows per workgroup of the attention
};

SHARED_END
#endif
