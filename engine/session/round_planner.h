// Who drafts for which sequence in the next round, and how many tokens: what was asked for where that is fixed, else what the
// policy expects to be fastest. Tells the policy what became of it. Starts nothing: the scheduler does.
#pragma once

#include "session/live_sequence.h"
#include "session/speculation/policy.h"
#include "session/speculation/speculation_store.h"
#include "session/turns/turn_queue.h"
#include "session/turns/turn_slices.h"

namespace auspex {

class RoundPlanner {
  public:
    // draft_context: rows that the draft model can hold of a sequence; 0: there is none.
    RoundPlanner(const CostPrior& prior, uint32_t max_draft_len, uint32_t draft_context)
        : costs_(prior), policy_(costs_, long_run_, max_draft_len), coin_policy_(costs_, coins_, max_draft_len), max_draft_len_(max_draft_len), draft_context_(draft_context) {}
    RoundPlanner(const RoundPlanner&) = delete; // the policy holds on to its neighbours

    // A sequence of the next round, and the rows that its draft cache would have to be given before the model can draft.
    struct Entry {
        LiveSequence* sequence;
        uint32_t lag_rows;
        uint32_t tokens_left; // before its limits, rounds under way taken off
    };
    // Sets drafter, draft_len and choice of every sequence. Those whose choice is to catch up take no part in the round. True: it is worth
    // searching texts after it.
    bool plan(std::span<const Entry> entries, uint32_t batch, const SpeculationPolicy::IsReady& is_ready);

    // GPU times and what the host adds, before anything was timed by bytes and stages.
    struct Predicted {
        double round_ms, target_pass_ms;
    };
    Predicted predict(const RoundForm& form) const;
    double pass_ms(uint32_t n_rows) const { return costs_.tiles_ms(n_rows); } // of the target, by the row family
    double replay_ms(TurnKind kind, uint32_t n_rows) const;

    // A round, with what was planned for its entries, took this long; wall_ms: since the GPU was free for it. is_steady: as ObservedRound has it.
    void observe_times(const Turn& turn, double wall_ms, bool is_steady);
    void observe_replay(const Turn& turn);
    void observe_outcome(LiveSequence& sequence, const DraftChoice& choice, const Outcome& outcome);

    // For a sequence's summary: draft pass and verify pass of its usual round / plain target pass, the speed-up over plain
    // decoding that was expected of what was chosen, and why. < 0: not known, or nothing to choose; then choice is "".
    struct Report {
        double c = -1, v = -1, predicted_speedup = -1;
        std::string choice;
    };
    Report report(const LiveSequence& sequence) const;
    const CostModel& costs() const { return costs_; }
    const LongRun& long_run() const { return long_run_; }
    const LongRun& coins() const { return coins_; }

    void load(const SpeculationStore& store, const SpeculationKey& key, const Logger& log) { store.load(key, costs_, long_run_, log); }
    void save(const SpeculationStore& store, const SpeculationKey& key, const Logger& log) const { store.save(key, costs_, long_run_, log); }

  private:
    CostModel costs_;
    LongRun long_run_, coins_; // coins_: what simulated acceptance did, which says nothing of the pair
    SpeculationPolicy policy_, coin_policy_;
    std::map<TurnKind, ReplayPace> paces_; // of those by the prompt kernels
    uint32_t max_draft_len_;
    uint32_t draft_context_;
};

} // namespace auspex
