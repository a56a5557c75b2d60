// draft_len auto: chooses who drafts and how many tokens, per round. Estimators say what a round gives, the cost model
// says what it takes; policy.cpp's first comment is the whole policy.
#pragma once

#include "session/speculation/acceptance_estimator.h"
#include "session/speculation/cost_model.h"

#include <span>
#include <string>

namespace auspex {

enum class DraftSource : uint32_t { none = 0, model = 1, proposals = 2 };

struct DraftChoice {
    DraftSource source = DraftSource::none;
    uint32_t draft_len = 0;              // 0 if and only if source is none
    DraftClass drafts = DraftClass::model;
    bool is_automatic = false;           // not a fixed draft_len
    bool catch_up = false; // replay lag_rows of the draft cache, then decide again: it cannot draft in this round
};

// What the policy remembers of one sequence; the owner of the sequence keeps it.
struct SequenceSpeculation {
    explicit SequenceSpeculation(const LongRunAcceptance& prior) : estimator(prior) {}

    AcceptanceEstimator estimator;
    double account = 0;          // tokens that speculation may still lose
    uint32_t n_tokens = 0;       // given by rounds that were read
    bool began = false, catching_up = false;
    struct Probe {
        uint32_t wait = 0, interval = 0; // plain rounds until the next probe; between probes
        uint32_t rounds_left = 0;        // of a probe under way
    };
    std::array<Probe, 2> probes = {}; // of the model, of proposals
    // For the summary.
    std::array<uint32_t, 3> rounds = {}; // by DraftSource
    std::array<uint64_t, 3> draft_lens = {}; // summed, by DraftSource
    double predicted_tokens = 0, predicted_plain_tokens = 0; // of its rounds, of plain rounds in the same time
};

// One sequence of a group that shares a round.
struct SpeculatingSequence {
    SequenceSpeculation* state = nullptr;
    bool may_use_model = false, may_use_proposals = false;
    bool is_fixed = false;
    uint32_t fixed_draft_len = 0;
    uint32_t lag_rows = 0;            // draft rows to be replayed before it can draft; 0: it can
    uint32_t match_len = 0;           // of the proposal that is likely there; 0: none
    uint32_t tokens_left = 0xffffffffu; // before its limit, rounds under way taken off
    DraftChoice choice;               // the answer
};

struct RoundPlan {
    RoundShape shape; // of the round, without those that catch up
    bool is_probe = false;
    double predicted_ms = 0, predicted_tokens = 0;
};

class SpeculationPolicy {
  public:
    // Costs and long run belong to the engine and outlive this.
    SpeculationPolicy(const CostModel& costs, LongRunAcceptance& long_run, uint32_t max_draft_len)
        : costs_(costs), long_run_(long_run), max_draft_len_(max_draft_len) {}

    // batch: slots that the round's recording has. Fills in every sequence's choice. Call once for every round that is
    // then started (and again after a catch-up).
    RoundPlan decide(std::span<SpeculatingSequence> group, uint32_t batch, bool transforms);

    // The round that `choice` was made for was read. draft_len: drafts tested (see AcceptanceEstimator::observe).
    void observe(SequenceSpeculation& state, const DraftChoice& choice, uint32_t draft_len, uint32_t accepted_len);

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
        double tokens = 0, ms = 0;
        double rate() const { return tokens / ms; }
    };
    DraftChoice choice_of(const SpeculatingSequence& sequence, bool model, uint32_t draft_len) const;
    bool affords(const SpeculatingSequence& sequence, const DraftChoice& choice, double loss) const;
    bool evaluate(std::span<SpeculatingSequence> group, uint32_t batch, bool transforms, Candidate& candidate);
    bool evaluate_probe(std::span<SpeculatingSequence> group, uint32_t batch, bool transforms, Candidate& candidate);
    void commit(std::span<SpeculatingSequence> group, const Candidate& chosen, bool is_probe);
    double catch_up_loss(const SpeculatingSequence& sequence, double plain_ms) const;

    const CostModel& costs_;
    LongRunAcceptance& long_run_;
    uint32_t max_draft_len_;
    bool last_model_ = false; // of the round before, for hysteresis
    uint32_t last_draft_len_ = 0;
};

} // namespace auspex
