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
