// auspex bench: plain and speculative decoding, alternately in one process, and what theory expects of them.
#include "cli/bench/comparison.h"
#include "cli/bench/plot.h"

namespace auspex::cli {

namespace {

constexpr size_t kSyntheticPromptTokens = 16;

std::vector<Way> ways_of(const BenchOptions& options) {
    std::vector<Way> ways = {{}}; // plain
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
    if (options.plot) check_plot(*options.plot);
    if (options.study == BenchStudy::tables) return bench_tables(options);
    if (options.study == BenchStudy::never_slower) return bench_never_slower(options);
    const auspex_synthetic_models synthetic = synthetic_models(options);
    Client::Request request{options.models};
    if (options.target_shape || options.draft_shape) request.synthetic = &synthetic;
    const std::vector<Way> ways = ways_of(options);
    request.max_draft_len = max_draft_len_of(ways);
    Client client(request);
    check_biases(options.sampling, client.info().vocab_size);

    TrialSetting setting{.sampling = options.sampling, .n_predict = options.n_predict};
    setting.prompt_tokens =
        options.target_shape ? synthetic_prompt(client.info().vocab_size) : client.tokenize(options.prompt);
    check_room(setting.prompt_tokens.size(), setting.n_predict, client.info());

    BenchReport report{.engine = client.info(), .options = options, .prompt_n = setting.prompt_tokens.size()};
    report.results = compare_ways(client, setting, ways, options.n_repetitions, options.seed, "");
    BenchResult& plain = report.results.front();
    plain.weights_gb_per_second =
        plain.tokens_per_second * static_cast<double>(client.info().target_weights_bytes) * 1e-9;

    if (options.json)
        print_json(report);
    else
        print_table(report);
    if (options.plot) write_plot(*options.plot, {{"", report.results}});
    return kExitOk;
}

} // namespace auspex::cli
