// What a stand-in for an engine says, and what it counts.
#pragma once

#include "openai/logprobs.h"
#include "openai/request.h"

#include <algorithm>
#include <string>
#include <vector>

namespace auspex::test {

// What the token k of an answer stands for: "w<k> "; the end token is a control token.
inline constexpr uint32_t kVocab = 32000, kEndToken = 2;
inline openai::Piece stand_in_piece(uint32_t id) {
    if (id == kEndToken) return {"</s>", true};
    return {"w" + std::to_string(id - 100) + " ", false};
}

inline std::vector<uint32_t> stand_in_layout(const std::vector<openai::Message>& messages) {
    std::vector<uint32_t> ids;
    for (const openai::Message& message : messages)
        ids.insert(ids.end(), message.content.size(), 107u); // of a letter each
    return ids;
}

// Of the token id that comes after n_said others, and of the best_n most probable ones.
inline auspex_token_logprobs stand_in_logprobs(uint32_t id, uint32_t n_said, uint32_t best_n) {
    auspex_token_logprobs of{};
    of.token = {id, -0.5f - static_cast<float>(n_said) / 16};
    of.best_count = best_n;
    for (uint32_t k = 0; k < best_n; ++k)
        of.best[k] = {id + k, of.token.logprob - static_cast<float>(k)};
    return of;
}

inline auspex_sequence_stats stand_in_stats(uint32_t prompt_n, uint32_t n_said, uint32_t rounds, uint32_t n_accepted) {
    auspex_sequence_stats stats;
    auspex_sequence_stats_init(&stats, sizeof stats);
    stats.prompt_n = prompt_n;
    stats.cached_n = prompt_n / 2;
    stats.predicted_n = n_said;
    stats.prompt_ms = 4;
    stats.predicted_ms = 2.0 * n_said;
    stats.rounds = rounds;
    stats.draft_n = n_accepted + (n_accepted > 0 ? 1 : 0);
    stats.draft_n_accepted = n_accepted;
    stats.tested_n = stats.draft_n;
    stats.overlap = n_accepted;
    for (uint32_t a = n_accepted; a > 0; a -= std::min(a, 3u))
        ++stats.accepted_histogram[std::min(a, 3u)];
    stats.drafter_rounds[n_accepted > 0 ? 1 : 0] = rounds;
    stats.c = stats.v = stats.predicted_speedup = -1;
    return stats;
}

} // namespace auspex::test
