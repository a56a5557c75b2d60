// From logits to one choice per row, in two stages: vocab_partials reduces chunks of the vocabulary with many
// workgroups, pick reduces the chunks of a row and, for drafts, hands the token to the rows that wait for it. Where only the
// best key counts, the head leaves BestTokens for pick ("pick.best"), and no logits.
#ifndef VOCAB_ARGS_H
#define VOCAB_ARGS_H
#include "slot_state.h"
SHARED_BEGIN

SHARED_CONST uint kVocabChunk = 1024u; // logits per workgroup, a multiple of 4

// Rows of logits with the Row that each comes from: of row r the one at first_row + r · row_step. Its logits lie at
// first_logits + r · logits_step, in rows of (vocab) f32.
#define LOGITS_ROWS_MEMBERS \
    uint vocab;             \
    uint n_chunks;          \
    uint first_row;         \
    uint row_step;          \
    uint first_logits;      \
    uint logits_step;

SHARED_CONST uint kVocabLogits = 0u;     // see LOGITS_ROWS_MEMBERS
SHARED_CONST uint kVocabState = 1u;      // (slots) SlotState
SHARED_CONST uint kVocabRows = 2u;       // Row; those that are not live are left out
SHARED_CONST uint kVocabPartials = 3u;   // (n_rows, n_chunks) VocabChoice
SHARED_CONST uint kVocabCuts = 4u;       // (n_rows) Cut; unused unless with_cuts

struct VocabPartialsArgs {
    LOGITS_ROWS_MEMBERS
    uint of_draft;  // 1: drafts are sampled: Gumbel noise joins the key of rows with temperature. 0: only where coupled
    uint with_cuts; // 1: logits that the row's cut leaves out take no part
};

SHARED_CONST uint kNoToken = 0xffffffffu;

struct BestToken {
    float key;
    uint id; // kNoToken: no key was a number
};

SHARED_CONST uint kPickPartials = 0u;   // (n_rows, n_chunks) VocabChoice; of pick.best BestToken
SHARED_CONST uint kPickChoices = 1u;    // (n_rows) VocabChoice, or (batch, draft_len)
SHARED_CONST uint kPickTargetRows = 2u; // (batch, nodes) Row, see round_rows.h
SHARED_CONST uint kPickDraftRows = 3u;  // regions of Row, see round_rows.h
SHARED_CONST uint kPickRoundSlots = 4u; // (batch) RoundSlot
SHARED_CONST uint kPickCuts = 5u;       // (n_rows) Cut; unused unless with_cuts

struct PickArgs {
    uint n_chunks;
    uint forward;        // 1: row r is what node `node` of batch entry r chose; the token goes to the node after it, in both row lists
    uint node;           // 0 … draft_len - 1
    uint batch;
    uint draft_len;      // K of this recording
    uint with_cuts;
};

SHARED_END
#endif
