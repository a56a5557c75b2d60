// What is known and what was chosen of one sequence whose drafts are decided on. Data, and what one sequence by itself would draft.
#pragma once

#include "sequence/sequence.h"
#include "session/speculation/account.h"
#include "session/speculation/acceptance_estimator.h"
#include "session/speculation/probation.h"

#include <array>
#include <string>

namespace auspex {

class CostModel;

enum class DraftSource : uint32_t { none = 0, model = 1, proposals = 2 };

struct DraftChoice {
    DraftSource source = DraftSource::none;
    uint32_t draft_len = 0;              // 0 if and only if source is none
    DraftClass drafts = DraftClass::model;
    bool is_automatic = false;           // not a fixed draft_len
    uint32_t match_len = 0; // of a proposal that a search likely finds; what becomes of it is seen, whoever drafts. 0: none
    bool catch_up = false; // replay lag_rows of the draft cache, then decide again: it cannot draft in this round
};

// What the policy remembers of one sequence; the owner of the sequence keeps it.
struct SequenceSpeculation {
    explicit SequenceSpeculation(const LongRun& prior) : estimator(prior) {}

    AcceptanceEstimator estimator;
    Account account;
    Probation probation;
    uint32_t n_tokens = 0; // given by rounds that were read
    bool began = false, catching_up = false;
    bool is_late = false; // a round with drafts would have been run, had its shaders been there, and none was since
    bool spends_savings = false; // on the probe under way

    // For the summary: by DraftSource rounds and the sum of their draft_len; what rounds were expected to give, and plain ones in the same time.
    std::array<uint64_t, 3> rounds = {}, draft_lens = {};
    double predicted_tokens = 0, predicted_plain_tokens = 0;

    // Another answer of the same text begins: the summary starts anew, what was learnt stays.
    void begin_part() {
        rounds = draft_lens = {};
        predicted_tokens = predicted_plain_tokens = 0;
    }
};

struct SpeculationSummary {
    double predicted_speedup = 1; // over plain rounds, by what was known when the rounds were chosen
    std::string reason;           // one line: "model drafts, K 4: α 0.82, c 0.21, v(5) 1.40 → 1.7x expected"
};
SpeculationSummary summary_of(const SequenceSpeculation& state, const CostModel& costs, const char* by_pass); // the name of who drafts by passes

// A round that is asked for.
struct AskedRound {
    bool model = false;     // the draft model may run
    uint32_t draft_len = 0; // drafts of a sequence, at most
    bool is_probe = false;  // only to see what becomes of them
};

// One sequence of a group that shares a round.
struct SpeculatingSequence {
    SequenceSpeculation* state = nullptr; // never null
    bool may_use_model = false, may_use_proposals = false;
    bool is_fixed = false;
    uint32_t fixed_draft_len = 0;
    uint32_t lag_rows = 0;            // draft rows to be replayed before it can draft; 0: it can
    uint32_t match_len = 0;           // of the proposal that is likely there; 0: none
    bool is_searched = false;         // it is found by a search of the text, not asked of somebody
    uint32_t tokens_left = 0xffffffffu; // before its limit, rounds under way taken off
    DraftChoice choice = {};          // the answer
    bool is_excused = false;          // inside: if it does not draft now, that says nothing against its drafts

    // What becomes of such drafts is seen in every round, whoever drafts: they need no probe, and no pause to be probed after.
    bool sees(DraftClass drafts) const { return drafts != DraftClass::model && is_searched; }
    // Tokens that its choice is expected to give.
    double expected_tokens() const { return state->estimator.expected_tokens(choice.drafts, choice.draft_len); }
    // What it would do in such a round.
    DraftChoice choice_in(const AskedRound& asked, const LongRun& long_run, uint32_t max_draft_len) const;
    // A round with this choice begins, in which plain rounds would have given so many tokens.
    void begin_round(bool is_probe, double plain_tokens);
};

} // namespace auspex
