// What speculation did for one request, as plain data: sums over its completions, and what follows from them.
#pragma once

#include "cli/common/input/options.h"

#include <array>
#include <type_traits>

namespace auspex::cli {

// Whose drafts a round tested, by place in auspex_sequence_stats.drafter_rounds; the last is self_drafter_rounds.
inline constexpr size_t kRoundDrafters = std::extent_v<decltype(auspex_sequence_stats::drafter_rounds)> + 1;
const char* round_drafter(size_t place); // its name

struct SpeculationReport {
    uint64_t predicted_n = 0, draft_n = 0, draft_n_accepted = 0, rounds = 0;
    std::vector<uint64_t> accepted_histogram{}; // (max_draft_len + 1) rounds by accepted_len
    uint64_t tested_n = 0;                      // drafts up to the first rejected one of each round
    double overlap = 0.0;
    std::array<uint64_t, kRoundDrafters> drafter_rounds{};
    std::optional<double> c{}, v{}; // of the last completion that had them
    std::optional<double>
        predicted_speedup{}; // over plain decoding, as the engine chose by; of all tokens that have one
    std::string choice{};    // of the last completion that had one

    void add(const auspex_sequence_stats& stats);

    std::optional<double> acceptance_rate() const;
    std::optional<double> tokens_per_round() const;
    // Mean Σ min(target, draft) over tested drafts: the α of Leviathan et al. 2023.
    std::optional<double> alpha() const;
    // [j - 1]: share of all rounds that accepted at least j drafts, whatever number of drafts each round had.
    std::vector<double> accepted_at_least() const;
    // predicted_speedup; where the engine had nothing to choose, tokens per round / (drafts per round · c + v).
    std::optional<double> expected_speedup() const;

  private:
    double predicted_tokens_ = 0.0, predicted_plain_tokens_ = 0.0; // in the same time
};

// For people, on stderr.
void print_line(const char* label, const std::string& text); // of a summary
// What drafts did, what was chosen and why, and plainly when it did not pay.
void print_speculation(const SpeculationReport& speculation, const SamplingOptions& sampling);

} // namespace auspex::cli
