// edit_logits: penalties, then biases, in place; one workgroup per (chunk of kVocabChunk, row). The same for rows of
// drafts and of the target, so that equal logits stay equal.
#ifndef EDIT_LOGITS_ARGS_H
#define EDIT_LOGITS_ARGS_H
#include "vocab_args.h"
SHARED_BEGIN

SHARED_CONST uint kEditLogits = 0u;     // rows of (vocab) f32: row r lies at logits_first + r · logits_step
SHARED_CONST uint kEditState = 1u;      // (slots) SlotState
SHARED_CONST uint kEditRoundSlots = 2u; // (batch) RoundSlot
SHARED_CONST uint kEditHistory = 3u;    // (slots, history_stride) uint: tokens of positions 0 … start are committed
SHARED_CONST uint kEditTargetRows = 4u; // (batch, draft_len + 1) Row: row i holds draft i of this round, from 1 on
SHARED_CONST uint kEditBiases = 5u;     // (slots, kMaxBiases) TokenBias

// Rows as in VocabPartialsArgs.
struct EditLogitsArgs {
    uint vocab;
    uint rows_per_slot;
    uint first_offset;
    uint logits_first; // in rows
    uint logits_step;
    uint of_draft;
    uint draft_len;    // K of this recording
    uint history_stride;
};

SHARED_END
#endif
