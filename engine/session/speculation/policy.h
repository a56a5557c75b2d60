// draft_len auto: chooses who drafts and how many tokens, per round. Estimators say what a round gives, the cost model
// says what it takes; policy.cpp's first comment is the whole policy.
#pragma once

#include "sequence/sequence.h"
#include "session/speculation/acceptance_estimator.h"
#include "session/speculation/cost_model.h"

#include <functional>
#include <map>
#include <span>
#include <string>

namespace auspex {

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
    double account = 0;    // tokens that speculation may still lose
    double allowance = 0;  // what the account was given so far
    double foretold = 0;   // tokens, for proposals besides the account: what single ones would have won since the last wrong one
    double charge = 0;     // of the last round that drafted, in tokens
    uint32_t n_tokens = 0; // given by rounds that were read
    bool began = false, catching_up = false;
    bool is_late = false; // a round with drafts would have been run, had its shaders been there, and none was since
    bool spends_savings = false; // on the probe under way
    struct Pause { // of one class of drafts, in rounds without it
        uint32_t left = 0, next = 0;
        uint32_t probe_left = 0; // rounds of the probe under way
        uint32_t run = 0;        // rounds with it up to the one before
    };
    std::array<Pause, kDraftClasses> pauses = {};
    // For the summary, by DraftSource: rounds, and the sum of their draft_len.
    std::array<uint64_t, 3> rounds = {}, draft_lens = {};
    double predicted_tokens = 0, predicted_plain_tokens = 0; // of its rounds; of plain rounds in the same time

    // Another answer of the same text begins: the summary starts anew, what was learnt stays.
    void begin_part() {
        rounds = draft_lens = {};
        predicted_tokens = predicted_plain_tokens = 0;
    }
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
    // What becomes of such drafts is seen in every round, whoever drafts: they need no probe, and no pause to be probed after.
    bool sees(DraftClass drafts) const { return drafts != DraftClass::model && is_searched; }
    bool is_excused = false;          // inside: if it does not draft now, that says nothing against its drafts
};

struct RoundPlan {
    RoundShape shape; // of the round, without those that catch up
    bool is_probe = false;
    double predicted_ms = 0, predicted_tokens = 0;
};

class SpeculationPolicy {
  public:
    // Costs and long run belong to the engine and outlive this.
    SpeculationPolicy(const CostModel& costs, LongRun& long_run, uint32_t max_draft_len)
        : costs_(costs), untaught_(costs.untaught()), long_run_(long_run), max_draft_len_(max_draft_len) {}

    // Whether a round of draft_len drafts could start now, without compiling anything.
    using IsReady = std::function<bool(bool model, uint32_t draft_len)>;
    // batch: slots that the round's recording has. Fills in every sequence's choice. Call once for every round that is
    // then started (and again after a catch-up). A draft_len is chosen only of rounds that are ready; what is fixed does not wait.
    RoundPlan decide(std::span<SpeculatingSequence> group, uint32_t batch, bool transforms, const IsReady& is_ready);

    // The round that `choice` was made for was read: every round, plain ones too. draft_len: drafts that were there to be
    // tested (0: asked for and none there). foretold: by a search, where the choice has a match_len. Not for a round that a stop or
    // limit cut short.
    void observe(SequenceSpeculation& state, const DraftChoice& choice, uint32_t draft_len, uint32_t accepted_len, Foretold foretold = Foretold::nothing);

    struct Summary {
        double predicted_speedup = 1; // over plain rounds, by what was known when the rounds were chosen
        std::string reason;           // one line: "model drafts, K 4: α 0.82, c 0.21, v(5) 1.40 → 1.7x expected"
    };
    Summary summary(const SequenceSpeculation& state) const;

  private:
    struct Candidate {
        bool model = false;
        uint32_t draft_len = 0;
        RoundShape shape;
        uint32_t n_drafting = 0; // sequences with an automatic draft_len that draft
        double tokens = 0, ms = 0;
        double recording_ms = 0; // of a shape that is not recorded yet
        double catch_up_ms = 0;  // as far as this round writes it off
        double rate() const { return tokens / (ms + catch_up_ms); }
    };
    using Group = std::span<SpeculatingSequence>;
    DraftChoice choice_of(const SpeculatingSequence& sequence, bool model, uint32_t draft_len, bool is_probe) const;
    // Fills in the group's choices. plain: what a draft's cost is held against.
    Candidate evaluate(Group group, const RoundShape& base, bool model, uint32_t draft_len, const Candidate* plain,
                       bool is_probe) const;
    Candidate choose(Group group, const RoundShape& base, const Candidate& plain, const IsReady& is_ready, bool& is_probe);
    double best_rate(Group group, const Candidate& drafting, uint32_t longest, double least_alpha, const CostModel& costs) const;
    bool could_win(Group group, const Candidate& plain, const Candidate& drafting, const CostModel& costs) const; // with good drafts
    double catch_up_loss(const SpeculatingSequence& sequence, double token_ms, bool is_probe) const; // in tokens
    uint32_t longest(const SequenceSpeculation& state, DraftClass drafts) const;
    bool reference_is_due() const;
    bool is_trusted(const SequenceSpeculation& state) const;
    bool is_recorded(const RoundShape& shape) const;
    bool usually_wins(const RoundShape& base) const; // the draft model, by the long run
    void earn(SequenceSpeculation& state, uint32_t tokens_left, const RoundShape& base) const;
    void commit(Group group, const Candidate& chosen, const Candidate& plain, bool is_probe);
    void pause(SpeculatingSequence& sequence, bool is_probe) const;

    const CostModel& costs_;
    const CostModel untaught_;
    LongRun& long_run_;
    uint32_t max_draft_len_;
    bool last_model_ = false; // of the round before, for hysteresis
    uint32_t last_draft_len_ = 0;
    uint32_t since_plain_ = 0, plain_run_ = 0; // rounds
    double last_speedup_ = 1;                  // expected of the last round that drafted
    double probe_savings_ = 0;                 // tokens, that a probe of doubtful costs takes
    std::map<RoundShape, uint32_t> begun_;     // rounds of each shape that drafts, of fixed draft_len, too
};

} // namespace auspex
