// The acceptance of Leviathan et al. 2023, algorithm 1, for every slot of the batch: accept_test tests K scalars and
// chooses the row, accept_race draws from that row (exponential race), accept_commit writes slot state and record.
#ifndef ACCEPT_ARGS_H
#define ACCEPT_ARGS_H
#include "propose_args.h"
SHARED_BEGIN

SHARED_CONST uint kTestTargetLogits = 0u;  // (batch, nodes, vocab) f32, see round_rows.h
SHARED_CONST uint kTestDraftLogits = 1u;   // (batch, draft_len, draft_vocab) f32
SHARED_CONST uint kTestTargetChoices = 2u; // (batch, nodes) VocabChoice
SHARED_CONST uint kTestDraftChoices = 3u;  // (batch, draft_len) VocabChoice
SHARED_CONST uint kTestState = 4u;         // (slots) SlotState
SHARED_CONST uint kTestRoundSlots = 5u;    // (batch) RoundSlot
SHARED_CONST uint kTestTargetRows = 6u;    // (batch, nodes) Row
SHARED_CONST uint kTestPlans = 7u;         // (batch) AcceptPlan

struct AcceptTestArgs {
    uint batch;
    uint draft_len;
    uint vocab;
    uint draft_vocab; // ≤ vocab: ids from there on the draft never says
};

SHARED_CONST uint kRaceTargetLogits = 0u;
SHARED_CONST uint kRaceDraftLogits = 1u;
SHARED_CONST uint kRaceTargetChoices = 2u;
SHARED_CONST uint kRaceDraftChoices = 3u;
SHARED_CONST uint kRaceState = 4u;
SHARED_CONST uint kRaceRoundSlots = 5u;
SHARED_CONST uint kRacePlans = 6u;
SHARED_CONST uint kRacePartials = 7u; // (batch, n_chunks) RacePartial

// The winner of a chunk over the residual and over the target itself; key 0: nobody has weight.
struct RacePartial {
    float residual_key;
    uint residual_id;
    float target_key;
    uint target_id;
};

struct AcceptRaceArgs {
    uint batch;
    uint draft_len;
    uint vocab;
    uint draft_vocab; // as of AcceptTestArgs
    uint n_chunks;
};

SHARED_CONST uint kCommitPartials = 0u;
SHARED_CONST uint kCommitPlans = 1u;
SHARED_CONST uint kCommitRoundSlots = 2u;
SHARED_CONST uint kCommitTargetRows = 3u;
SHARED_CONST uint kCommitState = 4u;
SHARED_CONST uint kCommitHistory = 5u; // (slots, history_stride) uint
SHARED_CONST uint kCommitRecords = 6u; // (batch) RoundRecord, read by the host
SHARED_CONST uint kCommitCounts = 7u;  // with SEARCHES: see kCountsSearch
SHARED_CONST uint kCommitIndex = 8u;   // with SEARCHES: (slots, 1 + index_words) uint

struct AcceptCommitArgs {
    uint batch;
    uint draft_len;
    uint n_chunks;
    uint history_stride;
    uint index_words;
};

SHARED_END
#endif
