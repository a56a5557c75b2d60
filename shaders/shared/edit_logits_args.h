// edit_logits: penalties, then biases, in place; one workgroup per (chunk of kVocabChunk, row). The same for rows of
// drafts and of the target, so that equal logits stay equal.
#ifndef EDIT_LOGITS_ARGS_H
#define EDIT_LOGITS_ARGS_H
#include "vocab_args.h"
SHARED_BEGIN

SHARED_CONST uint kEditLogits = 0u;     // see LOGITS_ROWS_MEMBERS
SHARED_CONST uint kEditState = 1u;      // (slots) SlotState
SHARED_CONST uint kEditRows = 2u;       // Row; those that are not live keep their logits
SHARED_CONST uint kEditHistory = 3u;    // (slots, history_stride) uint: tokens of positions 0 … prefix_len of a row are committed
SHARED_CONST uint kEditTargetRows = 4u; // (batch, nodes) Row: the drafts of this round, that parents are among
SHARED_CONST uint kEditBiases = 5u;     // (slots, kMaxBiases) TokenBias

struct EditLogitsArgs {
    LOGITS_ROWS_MEMBERS
    uint history_stride;
};

SHARED_END
#endif
