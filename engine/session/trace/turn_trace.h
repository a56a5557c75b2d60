// What a trace is told of a finished turn: when it and its stages ran, on the host's clock. Says nothing unless asked to.
#pragma once

#include "draft/drafters.h"
#include "session/turns/turn_queue.h"

#include <algorithm>
#include <functional>

namespace auspex {

struct TraceEvent {
    const char* name;
    bool is_stage; // of the turn told last; false: a turn
    uint64_t turn; // its number
    uint64_t begin_ns, duration_ns; // now_ns()'s clock
    uint32_t draft_len, batch, n_accepted, n_tokens; // of rounds; stages have their turn's
    const char* drafter; // its name, "none", or "mixed"; "" unless a round
};
using TraceSink = std::function<void(const TraceEvent&)>;

// Ticks of a GPU's clock as times of the host's. A turn begins some time after its submission, never before: the smallest such
// wait so far puts a turn's begin at the moment of its submission. A smaller one only ever moves the turns after it to later, so
// turns never overlap, nor end after they were seen to be done. Where ticks would have it otherwise (the GPU's clock was set
// back, or goes faster than it says) a turn ends when it was seen to be done.
class GpuClock {
  public:
    GpuClock(double period_ns, uint32_t valid_bits)
        : period_ns_(period_ns), mask_(valid_bits >= 64 ? ~0ull : (1ull << valid_bits) - 1) {}

    // The host's time of begin_tick, for a turn that reaches from there to end_tick.
    uint64_t begin_ns(uint64_t begin_tick, uint64_t end_tick, uint64_t submitted_ns, uint64_t done_ns);
    uint64_t between_ns(uint64_t from_tick, uint64_t to_tick) const {
        return static_cast<uint64_t>(std::min(static_cast<double>((to_tick - from_tick) & mask_) * period_ns_, 9e18));
    }

  private:
    double period_ns_;
    uint64_t mask_;
    uint64_t last_tick_ = 0, last_ns_ = 0; // end of the turn before, by both clocks; 0: there was none
};

class TurnTrace {
  public:
    TurnTrace(const Drafters& drafters, double period_ns, uint32_t valid_bits) : drafters_(&drafters), clock_(period_ns, valid_bits) {}

    void set(TraceSink sink) { sink_ = std::move(sink); } // empty: none
    bool is_on() const { return bool(sink_); }
    // What the sequences of a round made of it, one by one.
    void add(const Outcome& outcome);
    void turn_is_done(const Turn& turn);

  private:
    const Drafters* drafters_;
    TraceSink sink_;
    GpuClock clock_;
    uint64_t last_done_ns_ = 0; // of the turn before
    uint32_t n_accepted_ = 0, n_tokens_ = 0;
    std::optional<Drafter> drafter_; // of the round so far; none: nobody took part
    bool is_mixed_ = false;
};

} // namespace auspex
