// draft_len auto: chooses who drafts and how many tokens, per round. Estimators say what a round gives, the cost model says what it
// takes; policy.cpp's first comment lists the rules and where each of them is.
#pragma once

#include "session/speculation/best_shape.h"
#include "session/speculation/speculating_sequence.h"

#include <functional>
#include <span>

namespace auspex {

struct RoundPlan {
    RoundShape shape; // of the round, without those that catch up
    bool is_probe = false;
    bool searches = true; // after it: proposals that are found could pay
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

  private:
    using Group = std::span<SpeculatingSequence>;
    void begin_text(SequenceSpeculation& state, const RoundShape& base) const;
    Candidate evaluate(Group group, const RoundShape& base, const AskedRound& asked, const Candidate* plain) const;
    bool drop_unaffordable(Group group, Candidate& candidate, const Candidate& plain, bool is_probe) const;
    bool is_worth_searching(Group group, const Candidate& plain, const Candidate& chosen);
    AskedRound choose(Group group, const RoundShape& base, const Candidate& plain, const IsReady& is_ready);
    double catch_up_loss(const SpeculatingSequence& sequence, double token_ms, bool is_probe) const;
    void commit(Group group, const Candidate& chosen, const Candidate& plain, bool is_probe);

    const CostModel& costs_;
    const CostModel untaught_;
    LongRun& long_run_;
    uint32_t max_draft_len_;
    BestShape best_shape_;
    PlainReference reference_;
    uint32_t promised_ = 0; // plans in a row in which drafts were best; whoever is alone needs no more than one
    bool searches_ = true; // in company
    double probe_savings_ = 0; // tokens, that a probe of doubtful costs takes
};

} // namespace auspex
