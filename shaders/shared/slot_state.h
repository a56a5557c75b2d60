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

SHARED_CONST uint kDrafterNone = 0u; // equal Drafter of engine/sequence
SHARED_CONST uint kDrafterModel = 1u;
SHARED_CONST uint kDrafterNgram = 2u;  // tokens of `proposed`, found in the slot's own history
SHARED_CONST uint kDrafterLookup = 3u; // the same
SHARED_CONST uint kDrafterHost = 4u;   // tokens of `proposed`, written by the host
SHARED_CONST uint kDrafterSelf = 5u;   // the target, by weights of fewer bits, in the target's cache

// Drafts are sampled by passes within the round.
SHARED_FUNCTION bool drafts_by_pass(uint drafter) { return drafter == kDrafterModel || drafter == kDrafterSelf; }
// … and leave their rows in a cache of the drafter's own.
SHARED_FUNCTION bool fills_draft_cache(uint drafter) { return drafter == kDrafterModel; }

SHARED_CONST uint kAcceptRejection = 0u; // equal AcceptanceRule of engine/sequence
SHARED_CONST uint kAcceptCoupled = 1u;   // target and drafts take their Gumbel-argmax with the same noise
SHARED_CONST uint kAcceptSimulated = 2u; // a draft passes with probability simulated_alpha, whatever it is: for measuring speed

SHARED_CONST uint kMaxBiases = 1024u; // per slot

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
    // Transforms of target and draft logits alike, in the order in which they apply, all before the temperature.
    float repeat_penalty;    // 1: off
    float presence_penalty;  // 0: off
    float frequency_penalty; // 0: off
    uint n_biases;           // of the slot's list
    uint top_k;              // 0: off
    float top_p;             // 1: off
    float min_p;             // 0: off
    // Drafts and their test.
    uint acceptance;
    float lenience;          // 1: lossless; less: a draft passes the test as if its draft probability were this times as large
    float simulated_alpha;   // of kAcceptSimulated: 0 to 1
    uint drafter;            // of this slot's next rounds
    uint search;             // kDrafterNgram or kDrafterLookup: after each round propose looks for the next one's drafts
    uint search_len;         // drafts that it looks for
    uint ngram_max;          // tokens of the longest n-gram, or of the longest suffix that lookup compares
    uint indexed_len;        // tokens of the text that the index of searches knows; 0: it knows another text
    uint match_len;          // tokens of context that `proposed` was found by
    uint n_proposed;
    uint proposed[kMaxPath]; // drafts of the next round, of drafters without passes
    uint logprobs;           // 0: nobody asks for log-probabilities; else 1 + how many best tokens of each row
    uint n_stop;
    uint stop_ids[kMaxStopIds];
};
SHARED_CONST uint kSlotStateWords = 62u;

// One word of GPU memory that the host wants changed before the next rows are made.
SHARED_CONST uint kCommandState = 0u;      // SlotState of `slot`, word `index`
SHARED_CONST uint kCommandHistory = 1u;    // token of `slot` at position `index`
SHARED_CONST uint kCommandTargetPage = 2u; // page table of `slot`, logical page `index`
SHARED_CONST uint kCommandDraftPage = 3u;
SHARED_CONST uint kCommandBias = 4u;       // biases of `slot`, word `index` of its TokenBias list
struct SlotCommand {
    uint op;
    uint slot;
    uint index;
    uint value;
};

// Added to one token's logit; -inf bans it. A list names no token twice.
struct TokenBias {
    uint token;
    float bias;
};

// What rows.comp decided for one entry of the batch; pick and accept read it.
struct RoundSlot {
    uint slot;      // kNoSlot: padding
    uint draft_len; // K_s
    uint start;     // target_len before the round: the position of row 0
    uint live;
    uint one_hot;   // 1: the drafts were proposed, not sampled: each has draft probability 1
};

// What a row's truncation keeps: logits above `logit`, and those equal to it up to `last_id`. All logits: (-inf, ~0).
struct Cut {
    float logit;
    uint last_id;
};

// One row's reduction over the vocabulary.
struct VocabChoice {
    float best;   // largest key: logit, or logit/T plus Gumbel noise
    uint best_id; // lowest id among equals
    float max;    // of logit/T
    float sum;    // Σ exp(logit/T - max) of what the cut keeps; unset for greedy rows
    float cut_logit; // the row's Cut
    uint cut_last_id;
};

// accept_test's decision for one batch entry.
struct AcceptPlan {
    uint accepted_len;
    uint next_row;     // the next token comes from this row's distributions; accepted_len
    uint use_residual; // 1: from norm(max(0, target - draft)), 0: from target
    uint is_chosen;    // 1: the next token is chosen_token, greedy or coupled; 0: it is drawn
    uint chosen_token;
    uint draft_token;  // rejected; ~0 when all were accepted
    float overlap;     // Σ min(1, target / draft) of the drafts that were tested
    uint not_finite;   // bit j: the largest logit of the target's row j is no finite number; of rows 0 … accepted_len
};

// Of the first token proposed for a round.
SHARED_CONST uint kForetoldNothing = 0u;
SHARED_CONST uint kForetoldWrong = 1u;
SHARED_CONST uint kForetoldRight = 2u;

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
    uint drafter;         // whose drafts were tested; kDrafterNone when draft_len is 0
    uint match_len;       // of what is proposed for the next round; 0: nothing
    uint foretold;        // kForetold…: what was proposed for this round, used or not, held against what came
    float overlap;        // Σ min(1, target / draft) of the drafts that were tested
    uint not_finite;      // bit i: token i comes of a row of the target whose largest logit is no finite number
    uint tokens[kMaxPath];
    uint n_proposed;      // for the next round, by a search
    uint proposed[kMaxPath];
};

SHARED_END
#endif
