// What the GPU knows of every slot, the host's commands to it, and what it reports. Only GPU code writes SlotState;
// the host speaks through SlotCommand and listens to RoundRecord.
#ifndef SLOT_STATE_H
#define SLOT_STATE_H
#include "row.h"
SHARED_BEGIN

SHARED_CONST uint kMaxStopIds = 16u;
SHARED_CONST uint kNoSlot = 0xffffffffu;

SHARED_CONST uint kStopNone = 0u; // equal auspex_stop_reason
SHARED_CONST uint kStopEos = 1u;
SHARED_CONST uint kStopLength = 2u;
SHARED_CONST uint kStopContext = 3u;
SHARED_CONST uint kStopCancelled = 4u;

// Between rounds the target cache holds every token of the sequence except the last one (target_len of them); the draft
// cache holds the first draft_cache_len ≤ target_len of those.
struct SlotState {
    uint live;            // 0: empty or finished; no rows
    uint last_token;      // known, not yet evaluated; its position is target_len
    uint target_len;      // rows
    uint draft_cache_len; // rows
    uint draft_len;       // K this slot asks for
    uint n_generated;
    uint max_generated;
    uint max_context;     // tokens
    uint seed_low;
    uint seed_high;
    float temperature;    // 0: greedy
    uint n_stop;
    uint stop_ids[kMaxStopIds];
};
SHARED_CONST uint kSlotStateWords = 28u;

// One word of GPU memory that the host wants changed before the next rows are made.
SHARED_CONST uint kCommandState = 0u;      // SlotState of `slot`, word `index`
SHARED_CONST uint kCommandHistory = 1u;    // token of `slot` at position `index`
SHARED_CONST uint kCommandTargetPage = 2u; // page table of `slot`, logical page `index`
SHARED_CONST uint kCommandDraftPage = 3u;
struct SlotCommand {
    uint op;
    uint slot;
    uint index;
    uint value;
};

// What rows.comp decided for one entry of the batch; pick and accept read it.
struct RoundSlot {
    uint slot;      // kNoSlot: padding
    uint draft_len; // K_s
    uint start;     // target_len before the round: the position of row 0
    uint live;
};

// One row's reduction over the vocabulary.
struct VocabChoice {
    float best;   // largest key: logit, or logit/T plus Gumbel noise
    uint best_id; // lowest id among equals
    float max;    // of logit/T
    float sum;    // Σ exp(logit/T - max); unset for greedy rows
};

// accept_test's decision for one batch entry.
struct AcceptPlan {
    uint accepted_len;
    uint next_row;     // the next token comes from this row's distributions; accepted_len
    uint use_residual; // 1: from norm(max(0, target - draft)), 0: from target
    uint greedy;       // 1: the next token is greedy_token
    uint greedy_token;
};

// What the host reads: one per batch entry and round.
struct RoundRecord {
    uint slot;
    uint start;
    uint draft_len;    // K_s
    uint accepted_len; // before stops and limits cut the round
    uint n_tokens;     // emitted
    uint stop_reason;
    uint draft_cache_len; // after the round
    uint live_before;     // 0: the slot had no rows in this round
    uint tokens[kMaxPath];
};

SHARED_END
#endif
