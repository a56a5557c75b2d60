// Runs ways of decoding in turn, and derives what is compared.
#include "cli/bench/comparison.h"

#include "cli/common/output/figures.h"

#include <algorithm>

namespace auspex::cli {

namespace {

// One way, summed over the repetitions.
struct Tally {
    Way way{};
    std::vector<double> tokens_per_second{}; // one per repetition
    uint64_t n_corrections = 0;
    SpeculationReport speculation{};
    auspex_round_times times{};
    bool has_gpu_times = true;
    std::vector<double> cpu_us{}, first_token_ms{};
    uint64_t n_intervals = 0; // between rounds, of which times.wall_ms is the sum

    void add(const Trial& trial) {
        tokens_per_second.push_back(trial.tokens_per_second);
        speculation.add(trial.stats);
        n_corrections += static_cast<uint64_t>(
            std::count_if(trial.tokens.begin(), trial.tokens.end(),
                          [](const auspex_token& token) { return token.origin == AUSPEX_TOKEN_CORRECTION; }));
        cli::add(trial.times, times);
        n_intervals += trial.times.rounds > 0 ? trial.times.rounds - 1 : 0; // the first has none before it
        has_gpu_times = has_gpu_times && trial.has_gpu_times;
        if (trial.cpu_us_per_round) cpu_us.push_back(*trial.cpu_us_per_round);
        if (trial.stats.first_token_ms >= 0.0) first_token_ms.push_back(trial.stats.first_token_ms);
    }
};

// What one way of decoding did and took, per round.
BenchResult measured(const Tally& tally) {
    BenchResult result;
    result.way = tally.way;
    result.samples = tally.tokens_per_second;
    result.tokens_per_second = median(tally.tokens_per_second);
    result.stddev = standard_deviation(tally.tokens_per_second);
    result.acceptance_rate = tally.speculation.acceptance_rate();
    result.tokens_per_round = tally.speculation.tokens_per_round().value_or(0.0);
    result.overlap = tally.speculation.alpha();
    result.choice = tally.speculation.choice;
    result.drafter_rounds = tally.speculation.drafter_rounds;
    // Where drafts come and go nothing but the engine's own expectation is known.
    result.predicted_speedup = tally.speculation.predicted_speedup;
    // Every draft that was tested was accepted or met a correction; those after a correction were never tested, and
    // a round cut short by a limit has none. So this is the maximum likelihood estimate under that censoring.
    result.alpha = ratio(tally.speculation.draft_n_accepted, tally.speculation.draft_n_accepted + tally.n_corrections);
    if (!tally.cpu_us.empty()) result.cpu_us_per_round = median(tally.cpu_us);
    if (!tally.first_token_ms.empty()) result.first_token_ms = median(tally.first_token_ms);
    const auto rounds = static_cast<double>(tally.times.rounds);
    if (tally.times.rounds == 0) return result;
    if (tally.n_intervals > 0) result.round_ms = tally.times.wall_ms / static_cast<double>(tally.n_intervals);
    if (!tally.has_gpu_times) return result;
    result.draft_ms = tally.times.draft_ms / rounds;
    result.verify_ms = tally.times.verify_ms / rounds;
    result.accept_ms = tally.times.accept_ms / rounds;
    return result;
}

// c, v, the speed-up and its predictions, from this result and the plain one.
void compare(const BenchResult& plain, BenchResult& result) {
    if (plain.tokens_per_second > 0.0) result.speedup = result.tokens_per_second / plain.tokens_per_second;
    if (!plain.verify_ms || !result.verify_ms || *plain.verify_ms <= 0.0) return;
    const Way& way = result.way;
    if (way.draft_len == AUSPEX_DRAFT_LEN_AUTO) return; // rounds of many lengths
    result.v = *result.verify_ms / *plain.verify_ms;
    // The others draft some rounds only, and how many drafts they find is theirs.
    const bool is_model = drafts_by_pass_alone(way.drafter);
    if (!way.is_plain() && !is_model) return;
    if (is_model) result.c = *result.draft_ms / way.draft_len / *plain.verify_ms;
    if (is_model && !result.alpha) return;

    const double expected = expected_tokens(result.alpha.value_or(0.0), way.draft_len);
    result.theorem_speedup = expected / (way.draft_len * result.c.value_or(0.0) + *result.v);
    // A plain round's time outside the GPU is spent in every round.
    const double plain_gpu_ms = *plain.draft_ms + *plain.verify_ms + *plain.accept_ms;
    const double gpu_ms = *result.draft_ms + *result.verify_ms + *result.accept_ms;
    const double overhead_ms = std::max(0.0, plain.round_ms.value_or(plain_gpu_ms) - plain_gpu_ms);
    result.predicted_speedup = expected * (plain_gpu_ms + overhead_ms) / (gpu_ms + overhead_ms);
}

} // namespace

std::vector<BenchResult> compare_ways(Client& client, const TrialSetting& setting, const std::vector<Way>& ways,
                                      uint32_t n_repetitions, uint64_t first_seed, const std::string& label) {
    std::vector<Tally> tallies;
    for (const Way& way : ways)
        tallies.push_back({.way = way});
    StatusLine status;
    // Slow changes of the machine meet all of them alike.
    for (uint32_t repetition = 0; repetition <= n_repetitions; ++repetition) {
        const bool is_warm_up = repetition == 0;
        for (Tally& tally : tallies) {
            status.show(label + (is_warm_up ? "warm-up" : format("%u of %u", repetition, n_repetitions)) + ", " +
                        tally.way.name());
            const Trial trial =
                complete_once(client, setting, tally.way, first_seed + (is_warm_up ? 0 : repetition - 1));
            if (!is_warm_up) tally.add(trial);
        }
    }
    std::vector<BenchResult> results;
    for (const Tally& tally : tallies)
        results.push_back(measured(tally));
    const BenchResult plain = results.front();
    for (BenchResult& result : results)
        compare(plain, result);
    return results;
}

uint32_t max_draft_len_of(const std::vector<Way>& ways) {
    uint32_t longest = 0;
    for (const Way& way : ways)
        longest = std::max(longest, way.draft_len == AUSPEX_DRAFT_LEN_AUTO ? kUsualMaxDraftLen : way.draft_len);
    return longest;
}

} // namespace auspex::cli
