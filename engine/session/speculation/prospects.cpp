// Looks for a draft_len that would win.
#include "session/speculation/prospects.h"

#include <algorithm>

namespace auspex {

bool could_win(std::span<const SpeculatingSequence> group, const Candidate& plain, const Candidate& drafting, uint32_t max_draft_len, const CostModel& costs) {
    const double plain_rate = plain.tokens / costs.round_ms(plain.shape);
    for (uint32_t draft_len = 1; draft_len <= max_draft_len; ++draft_len) {
        RoundShape shape = drafting.shape;
        shape.draft_len = std::max(shape.draft_len, draft_len);
        double tokens = 0;
        for (const SpeculatingSequence& sequence : group) {
            const DraftChoice& choice = sequence.choice;
            const double known = sequence.state->estimator.expected_tokens(choice.drafts, choice.is_automatic ? draft_len : choice.draft_len);
            tokens += choice.is_automatic ? std::max(known, expected_tokens(kBestAlpha, draft_len)) : known;
        }
        if (is_worth_beginning(tokens / costs.round_ms(shape), plain_rate)) return true;
    }
    return false;
}

bool proposals_could_win(std::span<const SpeculatingSequence> group, const Candidate& plain, uint32_t max_draft_len, const CostModel& costs, bool is_searched) {
    const double plain_rate = plain.tokens / costs.round_ms(plain.shape);
    const auto n_searched = static_cast<double>(std::count_if(group.begin(), group.end(), [](const SpeculatingSequence& sequence) { return sequence.is_searched && !sequence.is_fixed; }));
    for (uint32_t draft_len = 1; draft_len <= max_draft_len; ++draft_len) {
        RoundShape shape = plain.shape;
        shape.proposals = true, shape.draft_len = draft_len;
        const double rate = (plain.tokens + n_searched * (expected_tokens(kBestAlpha, draft_len) - 1)) / costs.round_ms(shape);
        if (is_searched ? rate > plain_rate : is_worth_beginning(rate, plain_rate)) return true;
    }
    return false;
}

bool usually_wins(double alpha, const RoundShape& base, uint32_t max_draft_len, const CostModel& costs) {
    const double plain_ms = costs.plain_ms(base.batch);
    for (uint32_t draft_len = 1; draft_len <= max_draft_len; ++draft_len) {
        RoundShape shape = base;
        shape.model = true, shape.draft_len = draft_len;
        if (is_worth_beginning(expected_tokens(alpha, draft_len) * plain_ms, costs.round_ms(shape))) return true;
    }
    return false;
}

} // namespace auspex
