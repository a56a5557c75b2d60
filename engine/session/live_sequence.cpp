// What a round's outcome means for the host's view of a sequence.
#include "session/live_sequence.h"

#include <algorithm>

namespace auspex {

void PromptRows::add(uint32_t begin, uint32_t end) {
    if (begin >= end) return;
    if (!ranges_.empty() && ranges_.back().end == begin) ranges_.back().end = end;
    else ranges_.push_back({begin, end});
}

bool PromptRows::contains(uint32_t row) const {
    return std::any_of(ranges_.begin(), ranges_.end(), [&](const Range& range) { return range.begin <= row && row < range.end; });
}

uint32_t PromptRows::end_of_path(uint32_t row) const {
    for (const Range& range : ranges_) {
        if (row < range.begin) return range.begin;
        if (row < range.end) return range.end;
    }
    return ~0u;
}

void LiveSequence::apply(const Outcome& outcome, uint64_t time_ns) {
    if (first_token_ns == 0) first_token_ns = time_ns;
    last_token_ns = time_ns;
    stats.add(outcome);
    for (uint32_t i = 0; i < outcome.n_tokens; ++i) {
        uint32_t token = outcome.tokens[i];
        bool is_end = outcome.stop == StopReason::eos && i + 1 == outcome.n_tokens;
        std::string piece = stream && !is_end ? stream->push(token) : "";
        tokens.push_back(token);
        output.push_back({token, outcome.origin(i), static_cast<uint32_t>(piece.size())});
        text += piece;
    }
    target_len = outcome.start + outcome.n_tokens;
    draft_rows = outcome.draft_cache_len;
    match_len = outcome.match_len;
    stop = outcome.stop;
    if (stop != StopReason::none) end_text();
}

void LiveSequence::end_text() {
    if (!stream) return;
    std::string rest = stream->finish();
    if (!output.empty()) output.back().text_bytes += static_cast<uint32_t>(rest.size());
    text += rest;
}

void LiveSequence::append(SequenceRequest next, const Tokenizer* tokenizer, uint64_t time_ns) {
    const uint32_t begin = static_cast<uint32_t>(tokens.size()) - 1; // the last token was never evaluated
    tokens.insert(tokens.end(), next.prompt.begin(), next.prompt.end());
    request = std::move(next);
    if (prompt_read()) target_rows = begin; // else reading goes on where it is
    prompt_n = static_cast<uint32_t>(tokens.size());
    prompt_rows.add(begin, prompt_rows_wanted());
    life += 1;
    admitted = false;
    // Rounds still under way write behind these rows, and before anything that is queued from here on.
    unread_rounds = unread_rows = unread_undrafted = prefilled_n = match_len = 0;
    drafter = told_drafter = Drafter::none;
    stop = StopReason::none;
    if (tokenizer) stream.emplace(*tokenizer, false);
    stats = {};
    created_ns = time_ns;
    first_round_ns = first_token_ns = last_token_ns = 0;
}

} // namespace auspex
