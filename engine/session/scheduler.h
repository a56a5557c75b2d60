// Decides what the GPU does next: which prompts are prefilled, which drafts catch up, which slots share a
// round. Keeps at most two turns in flight, so that the next round is queued before the last one is read.
#pragma once

#include "session/admission/load.h"
#include "session/outcomes.h"
#include "session/turns/ready_rounds.h"
#include "session/turns/turn_order.h"
#include "session/turns/turn_slices.h"

namespace auspex {

class Scheduler {
  public:
    struct Limits {
        uint32_t max_context, max_draft_len, max_batch, max_replay_rows;
        double max_submission_ms;
        double max_gap_ms; // between two rounds of a text, for what is read between them
        bool may_run_short; // of pages
    };
    Scheduler(RoundModels models, TurnQueue& turns, Slots& slots, Admission& admission, RoundPlanner& planner, Outcomes& outcomes, Beginnings* beginnings, const Limits& limits)
        : models_(models), turns_(&turns), slots_(&slots), admission_(&admission), planner_(&planner), outcomes_(&outcomes), beginnings_(beginnings),
          turn_limits_{limits.max_batch, limits.max_replay_rows, limits.max_draft_len, models.draft != nullptr, models.draft_cache() != nullptr, limits.may_run_short},
          ready_(turns, turn_limits_), limits_(limits), draft_context_(models.draft_cache() ? models.draft_cache()->shape().max_rows : 0) {}

    // Compiles what sequences with this request will need. The request was checked.
    Status prepare(const SequenceRequest& request);

    struct StepResult {
        uint32_t n_active = 0, n_rounds_read = 0;
        double submitted_ms = 0;
        bool pending = false;
    };
    // budget_ms < 0: no bound. Never waits.
    Result<StepResult> step(double budget_ms);

    struct Position {
        Phase phase;
        uint32_t place = 0;  // of one that waits: how many are before it
        double wait_ms = -1; // … about; < 0: not known
    };
    Position position(const LiveSequence& sequence) const;
    EngineLoad load() const;

    // Told every turn that is done from here on, inside step. Empty: none.
    void set_trace(TraceSink sink) {
        turns_->time_copies(bool(sink));
        outcomes_->set_trace(std::move(sink));
    }

    // Waits for and reads what is under way; starts nothing. Pages on their way back are back afterwards.
    Status drain();
    // A free slot with pages of a model's cache for n_rows, for work that is not a sequence's and comes between turns. `use` must have
    // waited for what it submitted. capacity: no free slot, or too few free pages.
    Status with_free_slot(uint32_t n_rows, const Slots::Use& use, ModelRole of = ModelRole::target);
    // Parts, as Turn has them, of such work: one pass of the target by the row family.
    uint32_t slices_of_pass(uint32_t n_rows) const;

  private:
    using Group = std::vector<LiveSequence*>;
    // limit_ms: of a submission. False: nothing to start now.
    Result<bool> start_next(double limit_ms);
    Result<bool> start_forks();
    Result<bool> start_first_of(std::initializer_list<TurnKind> kinds, double limit_ms);
    Result<bool> start_replay(TurnKind kind, double limit_ms);
    Result<bool> start_round(double limit_ms);
    static ModelRole replayed(TurnKind kind) { return is_of_target(kind) ? ModelRole::target : ModelRole::draft; }
    uint32_t replayed_layers(TurnKind kind) const { return models_.of(replayed(kind))->config().n_layers; }
    uint32_t replay_rows(TurnKind kind, double limit_ms) const; // that a turn may hold
    std::pair<uint32_t, uint32_t> rows_to_replay(const LiveSequence& sequence, TurnKind kind) const;
    std::vector<LiveSequence*> readers(TurnKind kind); // whose rows such a turn is to fill, in its order
    double work_ms(const LiveSequence& sequence) const; // GPU time until it is over, about
    // That one with so many before it in the queue waits, of a priority of 0 where it is not in there yet.
    double wait_ms(uint32_t place) const;
    Status plan_round();
    // A sequence needs pages for so many rows that it has not: if no turn under way gives them back, somebody makes room at the end of this step.
    void is_short(const LiveSequence& sequence, ModelRole of, uint32_t n_rows);
    void make_room();
    Status read_done(StepResult& result); // turns that are complete; never waits

    RoundModels models_;
    TurnQueue* turns_;
    Slots* slots_;
    Admission* admission_;
    RoundPlanner* planner_;
    Outcomes* outcomes_;
    Beginnings* beginnings_; // null: none are kept
    TurnLimits turn_limits_;
    ReadyRounds ready_;
    TurnOrder order_;
    struct Shortage {
        ModelRole of;
        uint32_t n_pages;
    };
    std::optional<Shortage> shortage_; // of the oldest that went short
    RoundForm planned_form_ = {}; // batch and sampling of those whose next round was planned together
    bool searches_pay_ = true;    // after that round
    Limits limits_;
    uint32_t draft_context_; // rows that the draft model's own cache holds of a sequence; 0: there is none
};

} // namespace auspex
