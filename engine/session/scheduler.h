// Decides what the GPU does next: which sequences' prompts are read, which drafts are caught up, which slots share a
// round. Keeps at most two turns in flight, so that the next round is queued before the last one is read.
#pragma once

#include "session/command_writer.h"
#include "session/live_sequence.h"
#include "session/round_planner.h"
#include "session/trace/turn_trace.h"
#include "session/turns/ready_rounds.h"
#include "session/turns/turn_forms.h"
#include "session/turns/turn_queue.h"
#include "session/turns/turn_slices.h"

#include <map>
#include <set>

namespace auspex {

// Sums over rounds of one draft_len, since they were last taken.
struct RoundTimes {
    uint32_t rounds = 0;
    double draft_ms = 0, verify_ms = 0, accept_ms = 0; // GPU; negative: not available
    double wall_ms = 0;                                // between completions of consecutive rounds
};

class Scheduler {
  public:
    struct Limits {
        uint32_t n_slots, max_context, max_draft_len, max_batch, max_replay_rows;
        std::vector<uint32_t> stop_ids;
        double timestamp_period_ns; // of the device's clock; 0: it has none
        uint32_t timestamp_valid_bits;
        double max_submission_ms;
    };
    Scheduler(RoundModels models, TurnQueue& turns, RoundPlanner& planner, uint32_t max_commands, const Limits& limits)
        : models_(models), turns_(&turns), planner_(&planner), ready_(turns, {limits.max_batch, limits.max_replay_rows, limits.max_draft_len}, models.draft != nullptr),
          writer_(max_commands), limits_(limits), trace_(limits.timestamp_period_ns, limits.timestamp_valid_bits), free_slots_(limits.n_slots) {
        for (uint32_t i = 0; i < limits.n_slots; ++i) free_slots_[i] = limits.n_slots - 1 - i;
    }

    // capacity when no slot is free. The request was checked.
    Result<uint64_t> create(SequenceRequest request, const Tokenizer* tokenizer);
    Result<uint64_t> fork(uint64_t source, SequenceRequest request, const Tokenizer* tokenizer);
    // A finished sequence goes on after request.prompt, which may be empty. invalid_argument while it runs; capacity when
    // its context is full or the prompt leaves no room.
    Status append(uint64_t id, SequenceRequest request, const Tokenizer* tokenizer);
    Status destroy(uint64_t id);
    Status cancel(uint64_t id);
    Status set_draft_len(uint64_t id, uint32_t draft_len);
    // Compiles what sequences with this request will need. The request was checked.
    Status prepare(const SequenceRequest& request);
    LiveSequence* find(uint64_t id); // null: unknown or destroyed

    struct StepResult {
        uint32_t n_active = 0, n_rounds_read = 0;
        double submitted_ms = 0;
        bool pending = false;
    };
    // budget_ms < 0: no bound. Never waits.
    Result<StepResult> step(double budget_ms);
    RoundTimes take_round_times(uint32_t draft_len);
    // Told every turn that is done from here on, inside step. Empty: none.
    void set_trace(TraceSink sink);

    // Waits for and reads what is under way; starts nothing. Pages on their way back are back afterwards.
    Status drain();
    // A free slot with target pages for n_rows, for work that is not a sequence's and comes between turns. `use` must have
    // waited for what it submitted. capacity: no free slot.
    using UseSlot = std::function<Status(uint32_t slot, std::span<const PageChange> pages)>;
    // of_draft: with the draft model's pages instead.
    Status with_free_slot(uint32_t n_rows, const UseSlot& use, bool of_draft = false);
    // Parts, as Turn has them, of such work: one pass of the target by the row family.
    uint32_t slices_of_pass(uint32_t n_rows) const;

  private:
    using Group = std::vector<LiveSequence*>;
    // limit_ms: of a submission. False: nothing to start now.
    Result<bool> start_next(double limit_ms);
    Result<bool> start_forks();
    Result<bool> start_replay(TurnKind kind, double limit_ms);
    Result<bool> start_round(double limit_ms);
    double replay_ms(TurnKind kind, uint32_t rows) const;              // GPU time, predicted
    uint32_t replay_rows(TurnKind kind, double limit_ms) const;        // that a turn may hold
    const LlamaModel& replayed_model(TurnKind kind) const { return kind == TurnKind::target_prompt ? models_.target : *models_.draft; }
    bool awaits_round(const LiveSequence& sequence) const; // but for the draft model's lag
    bool draft_has_room(uint32_t target_len) const; // for the last token's row behind so many: without, the model drafts nothing
    uint32_t lag_rows(const LiveSequence& sequence) const; // that the draft model must be given before it can draft
    bool lags(const LiveSequence& sequence) const;         // and is to
    Status plan_round();
    void tell_plan(LiveSequence& sequence);
    void ask_host(LiveSequence& sequence);
    bool awaited(uint64_t id) const; // forks wait to be copied from it
    Status map_rows(LiveSequence& sequence, bool of_draft, uint32_t n_rows);
    void admit(LiveSequence& sequence);
    size_t command_words(const LiveSequence& sequence) const;
    gpu::SlotState initial_state(const LiveSequence& sequence) const;
    void finish(const Turn& turn, StepResult& result);
    Status read_done(StepResult& result); // turns that are complete; never waits
    void release(LiveSequence& sequence);
    Status no_free_slot() const;
    LiveSequence& add(SequenceRequest request, const Tokenizer* tokenizer);

    RoundModels models_;
    TurnQueue* turns_;
    RoundPlanner* planner_;
    ReadyRounds ready_;
    RoundForm planned_form_ = {}; // batch and sampling of those whose next round was planned together
    CommandWriter writer_;
    Limits limits_;
    TurnTrace trace_;
    std::vector<uint32_t> free_slots_;
    std::map<uint64_t, LiveSequence> sequences_;
    std::set<uint64_t> dying_; // destroyed by the caller, kept until forks of them are copied
    std::map<uint32_t, RoundTimes> round_times_;
    std::map<TurnKind, PromptPace> paces_; // of prompts
    uint64_t last_round_done_ns_ = 0, last_turn_done_ns_ = 0;
    bool is_behind_round_ = false; // the turn that is read next
    uint64_t next_id_ = 1;
};

} // namespace auspex
