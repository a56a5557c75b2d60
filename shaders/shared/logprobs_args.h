// Log-probabilities of what a round says: of the target's logits as the head left them, before penalties, biases, truncation and
// temperature, for rows of slots that ask. The GPU finds logits, maxima and sums; the host takes the logarithm.
//
//   logprobs_partials  (chunk, row)   before edit_logits: the chunk's softmax sums at temperature 1, and its best tokens
//   logprobs_keep      (block, row)   before edit_logits, where that runs: every logit that it may change
//   logprobs_rows      (row)          reduces the chunks of a row
//   logprobs_chosen    (node, entry)  after accept_commit: the token that the row gave, if it gave one, and its logit
#ifndef LOGPROBS_ARGS_H
#define LOGPROBS_ARGS_H
#include "vocab_args.h"
SHARED_BEGIN

SHARED_CONST uint kMaxLogprobs = 20u; // best tokens of a row, equals AUSPEX_MAX_LOGPROBS

// One chunk of one row. Of the lists as many as the slot asks for are set: the largest logit first, equal ones by lowest id, those that
// are no numbers last.
struct LogprobPartial {
    float max; // of what is a number; kLowest: nothing is, or is larger
    float sum; // Σ exp(logit - max) of the same
    float best_logits[kMaxLogprobs];
    uint best_ids[kMaxLogprobs]; // kNoToken: the chunk has no more
};

// What the host reads of one row.
struct LogprobRow {
    uint token;  // that was said; of rows that gave one
    float logit; // … its logit
    float max;   // as of LogprobPartial, of the row
    float sum;
    float best_logits[kMaxLogprobs];
    uint best_ids[kMaxLogprobs]; // kNoToken: the vocabulary has no more
};

// Logits of a row that edit_logits may change, in words: of the context's token at each position, and of each of the slot's biases.
SHARED_CONST uint kKeptBlock = 1024u; // words per workgroup
SHARED_FUNCTION uint kept_words_of(uint history_stride) { return history_stride + kMaxBiases; }

SHARED_CONST uint kLogprobsPartialsLogits = 0u;   // see LOGITS_ROWS_MEMBERS
SHARED_CONST uint kLogprobsPartialsState = 1u;    // (slots) SlotState
SHARED_CONST uint kLogprobsPartialsRows = 2u;     // Row; those that are not live are left out
SHARED_CONST uint kLogprobsPartialsPartials = 3u; // (n_rows, n_chunks) LogprobPartial

SHARED_CONST uint kLogprobsKeepLogits = 0u;     // see LOGITS_ROWS_MEMBERS
SHARED_CONST uint kLogprobsKeepState = 1u;      // (slots) SlotState
SHARED_CONST uint kLogprobsKeepRows = 2u;       // Row
SHARED_CONST uint kLogprobsKeepHistory = 3u;    // (slots, history_stride) uint: tokens of positions 0 … prefix_len of a row are committed
SHARED_CONST uint kLogprobsKeepTargetRows = 4u; // (batch, nodes) Row: the drafts of this round, that parents are among
SHARED_CONST uint kLogprobsKeepBiases = 5u;     // (slots, kMaxBiases) TokenBias
SHARED_CONST uint kLogprobsKeepKept = 6u;       // (n_rows, kept_words_of(history_stride)) f32

SHARED_CONST uint kLogprobsRowsPartials = 0u;
SHARED_CONST uint kLogprobsRowsState = 1u;
SHARED_CONST uint kLogprobsRowsRows = 2u;
SHARED_CONST uint kLogprobsRowsLogprobs = 3u; // (n_rows) LogprobRow, read by the host

// Of the ops before accept.
struct LogprobsArgs {
    LOGITS_ROWS_MEMBERS
    uint history_stride;
};

SHARED_CONST uint kLogprobsChosenLogits = 0u;     // (batch, nodes, vocab) f32, see round_rows.h
SHARED_CONST uint kLogprobsChosenState = 1u;      // (slots) SlotState, after the round
SHARED_CONST uint kLogprobsChosenRoundSlots = 2u; // (batch) RoundSlot
SHARED_CONST uint kLogprobsChosenHistory = 3u;    // (slots, history_stride) uint, with what the round said
SHARED_CONST uint kLogprobsChosenBiases = 4u;     // (slots, kMaxBiases) TokenBias
SHARED_CONST uint kLogprobsChosenKept = 5u;       // as kLogprobsKeepKept
SHARED_CONST uint kLogprobsChosenLogprobs = 6u;   // (batch, nodes) LogprobRow

struct LogprobsChosenArgs {
    uint draft_len; // K of this recording
    uint vocab;
    uint history_stride;
    uint with_kept; // 1: logits were edited, and those that may have been were kept
};

SHARED_END
#endif
