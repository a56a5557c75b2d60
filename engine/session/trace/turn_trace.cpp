// A turn reaches from the begin of its first stage to the end of its last; without timestamps, from its submission (or the end
// of the turn before it) to when it was seen to be done.
#include "session/trace/turn_trace.h"

#include <algorithm>

namespace auspex {

namespace {

const char* name_of(TurnKind kind) {
    switch (kind) {
    case TurnKind::round: return "round";
    case TurnKind::copy: return "fork";
    case TurnKind::prefill: return "prefill";
    case TurnKind::answer_prefill: return "answer prefill";
    default: return "draft prefill";
    }
}

} // namespace

uint64_t GpuClock::begin_ns(uint64_t begin_tick, uint64_t end_tick, uint64_t submitted_ns, uint64_t done_ns) {
    const uint64_t length = between_ns(begin_tick, end_tick);
    const uint64_t latest = done_ns - std::min(done_ns, length);
    // Where the clocks would go alike since the turn before, had that one ended when it was said to.
    const uint64_t alike = last_ns_ == 0 ? 0 : last_ns_ + between_ns(last_tick_, begin_tick);
    const uint64_t begin = std::max(std::min(std::max(submitted_ns, alike), latest), last_ns_);
    last_tick_ = end_tick;
    last_ns_ = begin + length;
    return begin;
}

void TurnTrace::add(const Outcome& outcome) {
    n_accepted_ += outcome.counted_accepted();
    n_tokens_ += outcome.n_tokens;
    is_mixed_ |= drafter_ && *drafter_ != outcome.drafter;
    drafter_ = outcome.drafter;
}

void TurnTrace::turn_is_done(const Turn& turn) {
    const bool is_round = turn.key.kind == TurnKind::round;
    TraceEvent event = {.name = name_of(turn.key.kind),
                        .is_stage = false,
                        .turn = turn.number,
                        .begin_ns = 0,
                        .duration_ns = 0,
                        .draft_len = turn.key.round.draft_len,
                        .batch = static_cast<uint32_t>(turn.entries.size()),
                        .n_accepted = n_accepted_,
                        .n_tokens = n_tokens_,
                        .drafter = !is_round ? "" : is_mixed_ ? "mixed" : drafters_->of(drafter_.value_or(Drafter::none)).name};
    n_accepted_ = n_tokens_ = 0;
    drafter_.reset();
    is_mixed_ = false;

    const std::vector<Recording::RegionTime>& stages = turn.regions;
    const bool is_timed = !stages.empty() && stages.front().ms >= 0;
    if (is_timed) {
        const uint64_t first = stages.front().begin_tick, last = stages.back().end_tick;
        event.begin_ns = clock_.begin_ns(first, last, turn.begun_ns, turn.done_ns);
        event.duration_ns = clock_.between_ns(first, last);
    } else {
        event.begin_ns = std::max(turn.begun_ns, last_done_ns_);
        event.duration_ns = turn.done_ns - event.begin_ns;
    }
    last_done_ns_ = turn.done_ns;
    sink_(event);
    if (!is_timed) return;
    event.is_stage = true;
    const uint64_t turn_begin_ns = event.begin_ns;
    for (const Recording::RegionTime& stage : stages) {
        event.name = region_name(stage.region);
        event.begin_ns = turn_begin_ns + clock_.between_ns(stages.front().begin_tick, stage.begin_tick);
        event.duration_ns = clock_.between_ns(stage.begin_tick, stage.end_tick);
        sink_(event);
    }
}

} // namespace auspex
