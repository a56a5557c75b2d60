// auspex bench: plain and speculative decoding, alternately in one process, and what theory expects of them.
#include "cli/bench/comparison.h"
#include "cli/bench/output/plot.h"
#include "cli/bench/speed.h"
#include "cli/common/input/prompt.h"
#include "cli/common/input/shapes.h"

#include <algorithm>

namespace auspex::cli {

namespace {

constexpr uint32_t kSyntheticPromptTokens = 16;

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

// The text that was given, or one that means nothing, of the first depth's length.
std::vector<uint32_t> prompt_of(Client& client, const BenchOptions& options) {
    const bool has_text = options.prompt.file || options.depths.front() == 0;
    if (options.shapes.target || !has_text)
        return filler_tokens(std::max(kSyntheticPromptTokens, options.depths.front()), client.info().vocab_size);
    const PromptText prompt = read_prompt(options.prompt);
    check_text(prompt);
    return client.tokenize(prompt.text);
}

} // namespace

int bench(const BenchOptions& options) {
    if (options.plot) check_plot(*options.plot);
    if (options.study == BenchStudy::tables) return bench_tables(options);
    if (options.study == BenchStudy::never_slower) return bench_never_slower(options);
    if (options.study == BenchStudy::concurrency) return bench_concurrency(options);
    const auspex_synthetic_models synthetic = synthetic_models(options.shapes);
    ModelOptions models = options.models;
    if (models.context == 0) models.context = context_needed(options);
    Client::Request request{models};
    request.prefix_cache = false;
    if (options.shapes.any()) request.synthetic = &synthetic;
    const std::vector<Way> ways = ways_of(options);
    request.max_draft_len = max_draft_len_of(ways);
    for (const uint32_t n_rows : options.pass_rows)
        request.max_draft_len = std::max(request.max_draft_len, n_rows - 1); // so many rows has a round
    Client client(request);
    check_biases(options.sampling, client.info().vocab_size);

    TrialSetting setting{.sampling = options.sampling, .n_predict = options.n_predict};
    setting.simulated_alpha = options.simulated_alpha;
    setting.prompt_tokens = prompt_of(client, options);
    check_room(setting.prompt_tokens.size(), setting.n_predict, client.info());

    BenchReport report{.engine = client.info(), .options = options, .prompt_n = setting.prompt_tokens.size()};
    report.speed = measure_speed(client, options);
    if (options.n_predict > 0) {
        report.results = compare_ways(client, setting, ways, options.n_repetitions, options.seed, "");
        BenchResult& plain = report.results.front();
        plain.weights_gb_per_second =
            plain.tokens_per_second * static_cast<double>(client.info().target_weights_bytes) * 1e-9;
        compare_with_passes(report.speed, options, report.results);
    }

    if (options.json)
        print_json(report);
    else if (options.format)
        print_rows(report);
    else
        print_table(report);
    if (options.plot) write_plot(*options.plot, {{"", report.results}});
    return kExitOk;
}

} // namespace auspex::cli
