// accept_candidates: several independent proposals for one position, tested one after the other, so that the token has
// exactly the target's distribution. One entry per position; what it tests is a list of candidates.
#ifndef ACCEPT_CANDIDATES_ARGS_H
#define ACCEPT_CANDIDATES_ARGS_H
#include "slot_state.h"
SHARED_BEGIN

SHARED_CONST uint kMaxCandidates = 8u; // per entry

SHARED_CONST uint kCandidatesTargetLogits = 0u;  // (target rows, vocab) f32
SHARED_CONST uint kCandidatesDraftLogits = 1u;   // (draft rows, draft_vocab) f32
SHARED_CONST uint kCandidatesTargetChoices = 2u; // (target rows) VocabChoice
SHARED_CONST uint kCandidatesDraftChoices = 3u;  // (draft rows) VocabChoice
SHARED_CONST uint kCandidatesState = 4u;         // (slots) SlotState: seed, temperature, acceptance
SHARED_CONST uint kCandidatesEntries = 5u;       // (n_entries) CandidateEntry
SHARED_CONST uint kCandidatesList = 6u;          // Candidate, those of an entry next to each other
SHARED_CONST uint kCandidatesOutcomes = 7u;      // (n_entries) CandidateOutcome

struct CandidateEntry {
    uint live; // 0: nothing is read or written
    uint slot;
    uint position; // of the token that is decided
    uint target_row;
    uint first; // candidate
    uint n;     // ≤ kMaxCandidates
};

// Equal tokens that were drawn more than once are that many candidates.
struct Candidate {
    uint token;
    uint draft_row; // of the distribution that the token was drawn from; several candidates may share it
    uint one_hot;   // 1: chosen, not drawn: the token has draft probability 1, and there is no row
};

struct CandidateOutcome {
    uint accepted; // candidate of the entry, or n
    uint token;
};

struct AcceptCandidatesArgs {
    uint n_entries;
    uint vocab;
    uint draft_vocab; // ≤ vocab: ids from there on no draft row has
};

SHARED_END
#endif
