// rows: turns slot states into the rows of one round. One workgroup.
#ifndef ROWS_ARGS_H
#define ROWS_ARGS_H
#include "slot_state.h"
SHARED_BEGIN

SHARED_CONST uint kRowsBatch = 0u;      // (batch) uint: slot of each entry, kNoSlot pads
SHARED_CONST uint kRowsState = 1u;      // (slots) SlotState
SHARED_CONST uint kRowsHistory = 2u;    // (slots, max_context) uint
SHARED_CONST uint kRowsRoundSlots = 3u; // (batch) RoundSlot
SHARED_CONST uint kRowsTarget = 4u;     // (batch, nodes) Row, see round_rows.h
SHARED_CONST uint kRowsDraft = 5u;      // regions of Row, see round_rows.h
SHARED_CONST uint kRowsCounts = 6u;     // 3 × 3 uint: attention grids of target pass, first draft pass, later draft passes; then the search's

SHARED_CONST uint kCountsTarget = 0u;
SHARED_CONST uint kCountsDraftFirst = 3u;
SHARED_CONST uint kCountsDraftNext = 6u;
SHARED_CONST uint kCountsSearch = 9u;   // workgroups of propose, none yet
SHARED_CONST uint kSearchEntries = 12u; // (batch): the batch entry of each, for accept_commit to fill in
SHARED_FUNCTION uint counts_words(uint batch) { return kSearchEntries + batch; }

struct RowsArgs {
    uint batch;
    uint draft_len; // K of this recording
    uint history_stride;
    uint split;     // keys per attention split
    uint target_kv_heads;
    uint draft_kv_heads;
    uint target_tile_rows;      // of attention, here with a slot's nodes
    uint draft_first_tile_rows; // … and with those of the first draft pass
    uint model_drafts; // 1: the recording has draft passes
    uint draft_lead;     // rows of an entry before node 0 in the first of them, see round_rows.h
    uint draft_max_rows; // of a slot in the draft's cache: at positions after them the model drafts nothing
};

SHARED_END
#endif
