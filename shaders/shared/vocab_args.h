// From logits to one choice per row, in two stages: vocab_partials reduces chunks of the vocabulary with many
// workgroups, pick reduces the chunks of a row and, for drafts, hands the token to the rows that wait for it. Where only the
// best key counts, the head leaves BestTokens for pick ("pick.best"), and no logits.
#ifndef VOCAB_ARGS_H
#define VOCAB_ARGS_H
#include "slot_state.h"
SHARED_BEGIN

SHARED_CONST uint kVocabChunk = 1024u; // logits per workgroup, a multiple of 4

SHARED_CONST uint kVocabLogits = 0u;     // rows of (vocab) f32: row r lies at logits_first + r · logits_step
SHARED_CONST uint kVocabState = 1u;      // (slots) SlotState
SHARED_CONST uint kVocabRoundSlots = 2u; // (batch) RoundSlot
SHARED_CONST uint kVocabPartials = 3u;   // (n_rows, n_chunks) VocabChoice
SHARED_CONST uint kVocabCuts = 4u;       // (n_rows) Cut; unused unless with_cuts

// Rows of batch entry b are b · rows_per_slot …; row j samples the token of position start + first_offset + j.
struct VocabPartialsArgs {
    uint vocab;
    uint n_chunks;
    uint rows_per_slot;
    uint first_offset;
    uint logits_first; // in rows
    uint logits_step;
    uint of_draft;  // 1: drafts are sampled: Gumbel noise joins the key of rows with temperature. 0: only where coupled
    uint with_cuts; // 1: logits that the row's cut leaves out take no part
};

SHARED_CONST uint kNoToken = 0xffffffffu;

struct BestToken {
    float key;
    uint id; // kNoToken: no key was a number
};

SHARED_CONST uint kPickPartials = 0u;   // (n_rows, n_chunks) VocabChoice; of pick.best BestToken
SHARED_CONST uint kPickChoices = 1u;    // VocabChoice: row r goes to choice_first + r · choice_step
SHARED_CONST uint kPickTargetRows = 2u; // (batch, draft_len + 1) Row
SHARED_CONST uint kPickDraftRows = 3u;  // regions of Row, see draft_pass_first_row
SHARED_CONST uint kPickRoundSlots = 4u; // (batch) RoundSlot
SHARED_CONST uint kPickCuts = 5u;       // (n_rows) Cut; unused unless with_cuts

struct PickArgs {
    uint n_chunks;
    uint forward;        // 1: row r is draft `step` of batch entry r; its token goes into both row lists
    uint step;           // 0 … draft_len - 1
    uint batch;
    uint draft_len;      // K of this recording
    uint choice_first;
    uint choice_step;
    uint with_cuts;
};

SHARED_END
#endif
