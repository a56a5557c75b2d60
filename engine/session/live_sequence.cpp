// What a round's outcome means for the host's view of a sequence.
#include "session/live_sequence.h"

namespace auspex {

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
    stop = outcome.stop;
    if (stop != StopReason::none && stream) {
        std::string rest = stream->finish();
        if (!output.empty()) output.back().text_bytes += static_cast<uint32_t>(rest.size());
        text += rest;
    }
}

} // namespace auspex
