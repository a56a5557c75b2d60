// Records become tokens; nothing here decides what comes next.
#include "session/outcomes.h"

#include "accept/acceptance.h"

#include <algorithm>

namespace auspex {

bool Outcomes::take(const Turn& turn, const TurnBuffers& buffers, uint64_t last_turn) {
    const bool is_round = turn.key.kind == TurnKind::round;
    if (is_round) take_round(turn, buffers, last_turn);
    else planner_->observe_replay(turn);
    if (trace_.is_on()) trace_.turn_is_done(turn);
    last_turn_done_ns_ = turn.done_ns;
    is_after_round_ = is_round;
    return is_round;
}

void Outcomes::take_round(const Turn& turn, const TurnBuffers& buffers, uint64_t last_turn) {
    const std::vector<gpu::RoundRecord> records = buffers.read_records(turn.entries.size());
    const bool all_live = std::all_of(records.begin(), records.end(), [](const gpu::RoundRecord& record) { return record.live_before != 0; });
    const size_t n_nodes = turn.key.round.n_nodes();
    const std::vector<gpu::LogprobRow> logprobs = turn.key.round.logprobs ? buffers.read_logprobs(records.size() * n_nodes) : std::vector<gpu::LogprobRow>();
    planner_->observe_times(turn, static_cast<double>(turn.done_ns - std::max(turn.submitted_ns, last_turn_done_ns_)) * 1e-6, all_live && is_after_round_);
    sum_times(turn);
    for (size_t b = 0; b < turn.entries.size(); ++b) {
        const TurnEntry& entry = turn.entries[b];
        auto found = admission_->sequences().find(entry.sequence);
        if (found == admission_->sequences().end()) continue; // destroyed meanwhile
        if (found->second.epoch != entry.epoch) continue; // appended to meanwhile
        const auto rows = logprobs.empty() ? std::span<const gpu::LogprobRow>() : std::span(logprobs).subspan(b * n_nodes, n_nodes);
        advance(found->second, turn, entry, records[b], rows, last_turn);
    }
}

void Outcomes::sum_times(const Turn& turn) {
    RoundTimes& times = round_times_[turn.key.round.draft_len];
    times.rounds += 1;
    times.draft_ms += turn.draft_ms;
    times.verify_ms += turn.verify_ms;
    times.accept_ms += turn.accept_ms;
    if (last_round_done_ns_ != 0) times.wall_ms += static_cast<double>(turn.done_ns - last_round_done_ns_) * 1e-6;
    last_round_done_ns_ = turn.done_ns;
}

void Outcomes::advance(LiveSequence& sequence, const Turn& turn, const TurnEntry& entry, const gpu::RoundRecord& record, std::span<const gpu::LogprobRow> rows,
                       uint64_t last_turn) {
    sequence.unread_rounds -= 1;
    sequence.unread_rows -= turn.key.round.n_nodes();
    sequence.unread_undrafted -= entry.fills_draft_cache ? 0 : 1;
    if (!record.live_before || sequence.stop != StopReason::none) return;
    sequence.stats.draft_ms += turn.draft_ms;
    sequence.stats.verify_ms += turn.verify_ms;
    sequence.stats.accept_ms += turn.accept_ms;
    if (sequence.first_token_ns == 0) sequence.first_round_ns = std::max(sequence.first_round_ns, last_turn_done_ns_); // it was queued after the prefill
    const Outcome outcome = read_outcome(record);
    std::vector<TokenLogprobs> logprobs;
    if (sequence.request.with_logprobs != 0)
        for (uint32_t i = 0; i < outcome.n_tokens; ++i) logprobs.push_back(read_logprobs(rows[i], sequence.request.n_logprobs));
    sequence.apply(outcome, turn.done_ns, logprobs);
    if (trace_.is_on()) trace_.add(outcome);
    if (sequence.stop != StopReason::none) admission_->has_ended();
    // Only the host knows text: rounds under way go on, and nobody reads them.
    if (sequence.stop == StopReason::text) slots_->tell_end(*sequence.slot);
    planner_->observe_outcome(sequence, entry.choice, outcome);
    // Pages beyond what is kept and what queued rounds may touch go back.
    slots_->keep(*sequence.slot, sequence.target_len + sequence.unread_rows + 1, last_turn);
}

RoundTimes Outcomes::take_round_times(uint32_t draft_len) {
    const RoundTimes times = round_times_[draft_len];
    round_times_.erase(draft_len);
    last_round_done_ns_ = 0;
    return times;
}

} // namespace auspex
