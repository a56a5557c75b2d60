// Sums over completions, and the figures that are derived from them.
#include "cli/common/output/speculation_report.h"

#include "cli/common/output/figures.h"

namespace auspex::cli {

const char* round_drafter(size_t place) {
    for (const auspex_drafter_info& row : drafters())
        if (row.rounds_place == place) return row.name;
    return "?";
}

void SpeculationReport::add(const auspex_sequence_stats& stats) {
    predicted_n += stats.predicted_n;
    draft_n += stats.draft_n;
    draft_n_accepted += stats.draft_n_accepted;
    rounds += stats.rounds;
    tested_n += stats.tested_n;
    overlap += stats.overlap;
    for (size_t i = 0; i < accepted_histogram.size(); ++i)
        accepted_histogram[i] += stats.accepted_histogram[i];
    for (size_t i = 0; i < std::size(stats.drafter_rounds); ++i)
        drafter_rounds[i] += stats.drafter_rounds[i];
    drafter_rounds.back() += stats.self_drafter_rounds;
    if (stats.c >= 0.0) c = stats.c;
    if (stats.v >= 0.0) v = stats.v;
    if (stats.choice[0] != '\0') choice = stats.choice;
    if (stats.predicted_speedup > 0.0 && stats.predicted_n > 0) {
        predicted_tokens_ += stats.predicted_n;
        predicted_plain_tokens_ += stats.predicted_n / stats.predicted_speedup;
        predicted_speedup = predicted_tokens_ / predicted_plain_tokens_;
    }
}

std::optional<double> SpeculationReport::acceptance_rate() const {
    return ratio(draft_n_accepted, draft_n);
}

std::optional<double> SpeculationReport::tokens_per_round() const {
    return ratio(predicted_n, rounds);
}

std::optional<double> SpeculationReport::alpha() const {
    return tested_n == 0 ? std::nullopt : std::optional(overlap / static_cast<double>(tested_n));
}

std::vector<double> SpeculationReport::accepted_at_least() const {
    std::vector<double> shares(accepted_histogram.empty() ? 0 : accepted_histogram.size() - 1);
    uint64_t n_rounds = 0;
    for (size_t j = shares.size(); j > 0; --j) {
        n_rounds += accepted_histogram[j];
        shares[j - 1] = ratio(n_rounds, rounds).value_or(0.0);
    }
    return shares;
}

std::optional<double> SpeculationReport::expected_speedup() const {
    if (predicted_speedup) return predicted_speedup;
    const std::optional<double> drafts = ratio(draft_n, rounds), tokens = tokens_per_round();
    if (!c || !v || !drafts || !tokens || draft_n == 0 || *v <= 0.0) return std::nullopt;
    return *tokens / (*drafts * *c + *v);
}

} // namespace auspex::cli
