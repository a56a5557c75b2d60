// auspex bench: plain and speculative decoding, alternately in one process, and what theory expects of them.
#include "cli/bench/measurement.h"
#include "cli/output/report.h"

#include <algorithm>

namespace auspex::cli {

namespace {

constexpr size_t kSyntheticPromptTokens = 16;

// One way, summed over the repetitions.
struct Tally {
    Way way{};
    std::vector<double> tokens_per_second{}; // one per repetition
    uint64_t n_corrections = 0;
    SpeculationReport speculation{};
    auspex_round_times times{};
    bool has_gpu_times = true;

    void add(const Trial& trial) {
        tokens_per_second.push_back(trial.tokens_per_second);
        speculation.add(trial.stats);
        n_corrections +=
            static_cast<uint64_t>(std::count_if(trial.tokens.begin(), trial.tokens.end(), [](const auspex_token& token) {
                return token.origin == AUSPEX_TOKEN_CORRECTION;
            }));
        cli::add(trial.times, times);
        has_gpu_times = has_gpu_times && trial.has_gpu_times;
    }
};

std::vector<Way> ways_of(const BenchOptions& options) {
    std::vector<Way> ways = {{}};
    for (const auspex_drafter drafter : options.drafters) {
        if (drafter == AUSPEX_DRAFTER_AUTO) {
            ways.push_back({drafter, AUSPEX_DRAFT_LEN_AUTO});
            continue;
        }
        for (const uint32_t draft_len : options.draft_lens)
            ways.push_back({drafter, draft_len});
    }
    return ways;
}

// Plain, K1, K2, …, plain again: slow changes of the machine meet all of them alike.
std::vector<Tally> measure(Client& client, const BenchOptions& options, const TrialSetting& setting) {
    std::vector<Tally> tallies;
    for (const Way& way : ways_of(options))
        tallies.push_back({.way = way});
    StatusLine status;
    for (uint32_t repetition = 0; repetition <= options.n_repetitions; ++repetition) {
        const bool is_warm_up = repetition == 0;
        for (Tally& tally : tallies) {
            status.show((is_warm_up ? "warm-up" : format("%u of %u", repetition, options.n_repetitions)) + ", " +
                        tally.way.name());
            const Trial trial =
                complete_once(client, setting, tally.way, options.seed + (is_warm_up ? 0 : repetition - 1));
            if (!is_warm_up) tally.add(trial);
        }
    }
    return tallies;
}

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
    // Every draft that was tested was accepted or met a correction; those behind a correction were never tested, and
    // a round cut short by a limit has none. So this is the maximum likelihood estimate under that censoring.
    result.alpha = ratio(tally.speculation.draft_n_accepted, tally.speculation.draft_n_accepted + tally.n_corrections);
    const auto rounds = static_cast<double>(tally.times.rounds);
    if (tally.times.rounds == 0) return result;
    if (tally.times.wall_ms > 0.0) result.round_ms = tally.times.wall_ms / rounds;
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
    const bool is_model = way.drafter == AUSPEX_DRAFTER_MODEL;
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

std::vector<uint32_t> synthetic_prompt(uint32_t vocab_size) {
    std::vector<uint32_t> tokens;
    for (uint32_t i = 0; i < kSyntheticPromptTokens; ++i)
        tokens.push_back(static_cast<uint32_t>((uint64_t{i} * 7919 + 1) % vocab_size));
    return tokens;
}

auspex_synthetic_models synthetic_models(const BenchOptions& options) {
    auspex_synthetic_models models;
    auspex_synthetic_models_init(&models, sizeof models);
    if (options.target_shape) models.target = *options.target_shape;
    if (options.draft_shape) {
        models.draft = *options.draft_shape;
        models.draft.seed += 1; // unrelated to a target of the same shape
    }
    return models;
}

} // namespace

int bench(const BenchOptions& options) {
    const auspex_synthetic_models synthetic = synthetic_models(options);
    Client::Request request{options.models};
    if (options.target_shape || options.draft_shape) request.synthetic = &synthetic;
    for (const Way& way : ways_of(options))
        request.max_draft_len = std::max(request.max_draft_len,
                                         way.draft_len == AUSPEX_DRAFT_LEN_AUTO ? kUsualMaxDraftLen : way.draft_len);
    Client client(request);
    check_biases(options.sampling, client.info().vocab_size);

    TrialSetting setting{.sampling = options.sampling, .n_predict = options.n_predict};
    setting.prompt_tokens =
        options.target_shape ? synthetic_prompt(client.info().vocab_size) : client.tokenize(options.prompt);
    check_room(setting.prompt_tokens.size(), setting.n_predict, client.info());

    BenchReport report{.engine = client.info(), .options = options, .prompt_n = setting.prompt_tokens.size()};
    for (const Tally& tally : measure(client, options, setting))
        report.results.push_back(measured(tally));
    BenchResult& plain = report.results.front();
    plain.weights_gb_per_second =
        plain.tokens_per_second * static_cast<double>(client.info().target_weights_bytes) * 1e-9;
    for (BenchResult& result : report.results)
        compare(plain, result);

    if (options.json)
        print_json(report);
    else
        print_table(report);
    return kExitOk;
}

} // namespace auspex::cli
