// What a turn that is done means: its records go to the sequences, its times to the planner, the sums and the trace.
#pragma once

#include "session/admission/admission.h"
#include "session/round_planner.h"
#include "session/trace/turn_trace.h"

namespace auspex {

// Sums over rounds of one draft_len, since they were last taken.
struct RoundTimes {
    uint32_t rounds = 0;
    double draft_ms = 0, verify_ms = 0, accept_ms = 0; // GPU; negative: not available
    double wall_ms = 0;                                // between completions of consecutive rounds
};

class Outcomes {
  public:
    // The device's clock: nanoseconds of a tick, 0: it has none; and bits that count.
    Outcomes(Admission& admission, Slots& slots, RoundPlanner& planner, const Drafters& drafters, double timestamp_period_ns, uint32_t timestamp_valid_bits)
        : admission_(&admission), slots_(&slots), planner_(&planner), trace_(drafters, timestamp_period_ns, timestamp_valid_bits) {}

    // Turns come in their order, before `buffers`, which the turn used, are written again. last_turn: number of the newest that was
    // started. Whether it was a round.
    bool take(const Turn& turn, const TurnBuffers& buffers, uint64_t last_turn);
    RoundTimes take_round_times(uint32_t draft_len);
    void set_trace(TraceSink sink) { trace_.set(std::move(sink)); }

  private:
    void take_round(const Turn& turn, const TurnBuffers& buffers, uint64_t last_turn);
    void sum_times(const Turn& turn);
    void advance(LiveSequence& sequence, const Turn& turn, const TurnEntry& entry, const gpu::RoundRecord& record, std::span<const gpu::LogprobRow> rows,
                 uint64_t last_turn); // rows: of the entry; none in rounds without log-probabilities

    Admission* admission_;
    Slots* slots_;
    RoundPlanner* planner_;
    TurnTrace trace_;
    std::map<uint32_t, RoundTimes> round_times_; // by draft_len
    uint64_t last_round_done_ns_ = 0, last_turn_done_ns_ = 0;
    bool is_after_round_ = false; // the turn that comes next
};

} // namespace auspex
