// What a round's outcome means for the host's view of a sequence.
#include "session/live_sequence.h"

#include "draft/host_drafter.h"

#include <algorithm>
#include <utility>

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

namespace {

// Where the stop text begins that is the first to be complete, so that how a text is cut into tokens makes no difference; of several that end
// together the longest. npos: none is there.
size_t find_stop(const std::string& text, const std::vector<std::string>& stops) {
    size_t first = std::string::npos, first_end = std::string::npos;
    for (const std::string& stop : stops) {
        const size_t at = text.find(stop);
        if (at == std::string::npos || std::pair(at + stop.size(), at) >= std::pair(first_end, first)) continue;
        first = at;
        first_end = at + stop.size();
    }
    return first;
}

// Bytes at the end of `text` that may be the beginning of a stop text.
size_t undecided_bytes(const std::string& text, const std::vector<std::string>& stops) {
    size_t longest = 0;
    for (const std::string& stop : stops)
        for (size_t n = std::min(text.size(), stop.size() - 1); n > longest; --n)
            if (text.compare(text.size() - n, n, stop, 0, n) == 0) longest = n;
    return longest;
}

} // namespace

uint32_t LiveSequence::tokens_left(uint32_t max_context) const {
    const uint32_t done = static_cast<uint32_t>(tokens.size()) + unread_rounds;
    const uint32_t left = max_context - std::min(max_context, done);
    return request.max_tokens == 0 ? left : std::min(left, request.max_tokens - std::min(request.max_tokens, done - prompt_n));
}

std::vector<uint32_t> LiveSequence::ask(uint32_t vocab) {
    std::vector<uint32_t> drafts = ask_for_drafts(who().ask ? who().ask : request.host_drafter, tokens, draft_len, vocab);
    draft_len = static_cast<uint32_t>(drafts.size());
    if (drafts.empty()) drafter = Drafter::none;
    return drafts;
}

bool LiveSequence::awaits_round(uint32_t max_context) const {
    if (stop != StopReason::none || holds() || !is_prefilled()) return false;
    if (request.asks() && unread_rounds > 0) return false; // it is asked with all tokens known
    // Every queued round gives at least one token: no round is queued that certainly has nothing to do.
    const uint64_t at_least = n_generated() + unread_rounds;
    if (request.max_tokens != 0 && at_least >= request.max_tokens) return false;
    return tokens.size() + unread_rounds < max_context;
}

uint32_t LiveSequence::lag_rows(uint32_t draft_context) const {
    const uint32_t least_len = target_len + unread_undrafted; // of the target, by then
    if (least_len >= draft_context) return 0; // there is no row for the last token: the model drafts nothing
    // A round would carry one missing row, but by the row kernels: those of a prompt are caught up with.
    const bool row_of_prompt = draft_rows < target_len && prompt_rows.contains(draft_rows);
    return least_len > draft_rows + 1 || row_of_prompt ? least_len - draft_rows : 0;
}

void LiveSequence::apply(Outcome outcome, uint64_t time_ns, std::span<const TokenLogprobs> of_tokens) {
    if (first_token_ns == 0) first_token_ns = time_ns;
    last_token_ns = time_ns;
    for (uint32_t i = 0; i < outcome.n_tokens; ++i) {
        const uint32_t token = outcome.tokens[i];
        const bool is_end = outcome.stop == StopReason::eos && i + 1 == outcome.n_tokens;
        if (stream && !is_end) undecided += stream->push(token);
        size_t n_decided = undecided.size() - undecided_bytes(undecided, request.stop_texts);
        if (const size_t hit = find_stop(undecided, request.stop_texts); hit != std::string::npos) {
            n_decided = hit;
            outcome.stop = StopReason::text;
            outcome.n_tokens = i + 1; // what follows was never said
        }
        tokens.push_back(token);
        output.push_back({token, outcome.origin(i), static_cast<uint32_t>(n_decided)});
        if (i < of_tokens.size()) logprobs.push_back(of_tokens[i]);
        text.append(undecided, 0, n_decided);
        undecided.erase(0, n_decided);
    }
    if (outcome.stop == StopReason::text) {
        undecided.clear();
        stream.reset();
    }
    stats.add(outcome);
    target_len_before = std::exchange(target_len, outcome.start + outcome.n_tokens);
    draft_rows = drafts_are_off ? 0 : std::min(outcome.draft_cache_len, target_len);
    match_len_before = std::exchange(match_len, outcome.match_len);
    proposed = std::move(outcome.proposed);
    stop = outcome.stop;
    if (stop != StopReason::none) end_text();
}

void LiveSequence::end_text() {
    if (!stream) return;
    undecided += stream->finish();
    if (!output.empty()) output.back().text_bytes += static_cast<uint32_t>(undecided.size());
    text += undecided;
    undecided.clear();
}

void LiveSequence::forget_rows() {
    slot = nullptr;
    epoch += 1;
    wanted_rows = static_cast<uint32_t>(tokens.size()) - 1;
    target_rows = target_len = draft_rows = unread_rounds = unread_rows = unread_undrafted = 0;
    planned = false;
}

void LiveSequence::append(SequenceRequest next, const Tokenizer* tokenizer, uint64_t time_ns) {
    const uint32_t begin = static_cast<uint32_t>(tokens.size()) - 1; // the last token was never evaluated
    tokens.insert(tokens.end(), next.prompt.begin(), next.prompt.end());
    request = std::move(next);
    if (is_prefilled()) target_rows = begin; // else the prefill goes on where it is
    prompt_n = static_cast<uint32_t>(tokens.size());
    wanted_rows = prompt_n - 1;
    prompt_rows.add(begin, wanted_rows);
    epoch += 1;
    // Rounds still under way write after these rows, and before anything that is queued from here on.
    unread_rounds = unread_rows = unread_undrafted = prefilled_n = cached_n = match_len = match_len_before = 0;
    proposed.clear();
    drafter = Drafter::none;
    planned = drafts_are_off = false;
    if (speculation) speculation->begin_part();
    stop = StopReason::none;
    if (tokenizer) stream.emplace(*tokenizer, false);
    stats = {};
    created_ns = time_ns;
    first_round_ns = first_token_ns = last_token_ns = 0;
}

} // namespace auspex
