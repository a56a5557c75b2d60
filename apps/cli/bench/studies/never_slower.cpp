// auspex bench --never-slower: is --drafter auto slower than plain decoding, or than the best fixed way, on any kind of
// text, at temperature 0 or 1, with the user's pair, with a draft that is of no use, and with one as dear as the
// target?
#include "cli/bench/comparison.h"
#include "cli/bench/studies/never_slower_report.h"
#include "cli/bench/studies/prompts.h"
#include "cli/common/output/figures.h"

#include <algorithm>

namespace auspex::cli {

namespace {

struct Prompt {
    PromptKind kind;
    std::vector<uint32_t> tokens;
};

// A pair of models, opened.
struct Pair {
    const char* name;
    Client& client;
    bool are_all_kinds;
};

std::vector<Way> ways_of(const Client& client) {
    std::vector<Way> ways = {{}, {AUSPEX_DRAFTER_AUTO, AUSPEX_DRAFT_LEN_AUTO}};
    if (client.info().has_draft != 0) {
        const auspex_drafter drafter = client.info().is_self_draft != 0 ? AUSPEX_DRAFTER_SELF : AUSPEX_DRAFTER_MODEL;
        ways.push_back({drafter, 2});
        ways.push_back({drafter, 4});
    }
    ways.push_back({AUSPEX_DRAFTER_NGRAM, 4});
    return ways;
}

// Medians of ratios within an alternation: what changes the whole machine for a while changes both.
double median_ratio(const std::vector<double>& of, const std::vector<double>& to) {
    std::vector<double> ratios;
    for (size_t i = 0; i < of.size(); ++i)
        ratios.push_back(to[i] > 0.0 ? of[i] / to[i] : 0.0);
    return median(ratios);
}

NeverSlowerRow measure(const Pair& pair, const Prompt& prompt, double temperature, const BenchOptions& options,
                       StatusLine& status, const std::string& label) {
    TrialSetting setting{.sampling = options.sampling, .prompt_tokens = prompt.tokens, .n_predict = options.n_predict};
    setting.sampling.temperature = temperature;
    const std::vector<Way> ways = ways_of(pair.client);
    std::vector<std::vector<double>> speeds(ways.size());
    NeverSlowerRow row{.pair = pair.name, .kind = prompt.kind.name, .temperature = temperature};
    for (uint32_t repetition = 0; repetition <= options.n_repetitions; ++repetition)
        for (size_t i = 0; i < ways.size(); ++i) {
            const size_t w = (i + repetition) % ways.size(); // none always comes first
            status.show(label + format("%u of %u, ", repetition, options.n_repetitions) + ways[w].name());
            const Trial trial = complete_once(pair.client, setting, ways[w], options.seed + repetition);
            if (repetition == 0) continue; // warms up
            speeds[w].push_back(trial.tokens_per_second);
            if (w == 1 && trial.stats.choice[0] != '\0') row.choice = trial.stats.choice;
        }
    row.plain = median(speeds[0]);
    row.automatic = median(speeds[1]);
    row.over_plain = median_ratio(speeds[1], speeds[0]);
    size_t best = 0; // plain is one of the fixed ways
    for (size_t w = 2; w < ways.size(); ++w)
        if (median(speeds[w]) > median(speeds[best])) best = w;
    row.best = median(speeds[best]);
    row.best_name = ways[best].name();
    row.over_best = median_ratio(speeds[1], speeds[best]);
    return row;
}

void measure_pair(const Pair& pair, const std::vector<Prompt>& prompts, const BenchOptions& options,
                  NeverSlowerReport& report) {
    StatusLine status;
    for (const Prompt& prompt : prompts) {
        if (!pair.are_all_kinds && !prompt.kind.is_probe) continue;
        check_room(prompt.tokens.size(), options.n_predict, pair.client.info());
        for (const double temperature : {0.0, 1.0}) {
            const std::string label =
                std::string(pair.name) + ", " + prompt.kind.name + format(", temperature %g, ", temperature);
            report.rows.push_back(measure(pair, prompt, temperature, options, status, label));
        }
    }
}

// Random weights in the draft's shape: every draft it makes is wrong.
auspex_synthetic_models useless_draft(const ModelOptions& models) {
    const auspex_model_info draft = describe_model(models.draft, models.cache_type);
    auspex_synthetic_models synthetic;
    auspex_synthetic_models_init(&synthetic, sizeof synthetic);
    auspex_synthetic_shape& shape = synthetic.draft;
    shape.hidden_size = draft.hidden_size;
    shape.n_layers = draft.n_layers;
    shape.n_heads = draft.n_heads;
    shape.n_kv_heads = draft.n_kv_heads;
    shape.head_dim = draft.head_dim;
    shape.ffn_size = draft.ffn_size;
    shape.vocab_size = draft.vocab_size;
    shape.max_position = draft.max_position;
    shape.tied_embedding = draft.tied_embedding;
    shape.dtype = 2;
    shape.seed = 1;
    shape.scale = 0.02f;
    return synthetic;
}

} // namespace

int bench_never_slower(const BenchOptions& options) {
    std::vector<Prompt> prompts;
    NeverSlowerReport report{.options = options};
    {
        Client client({.models = options.models, .max_draft_len = kUsualMaxDraftLen, .prefix_cache = false});
        check_biases(options.sampling, client.info().vocab_size);
        report.engine = client.info();
        for (const PromptKind& kind : prompt_kinds())
            prompts.push_back({kind, tokens_of(client, kind)});
        measure_pair({options.models.draft.empty() ? "no draft model" : "the pair", client, true}, prompts, options, report);
    }
    if (!options.models.draft.empty()) {
        ModelOptions models = options.models;
        models.draft.clear();
        const auspex_synthetic_models synthetic = useless_draft(options.models);
        Client useless({.models = models, .synthetic = &synthetic, .max_draft_len = kUsualMaxDraftLen, .prefix_cache = false});
        measure_pair({"useless draft", useless, false}, prompts, options, report);
    }
    {
        ModelOptions models = options.models;
        models.draft = models.target;
        models.draft_weights = models.target_weights;
        models.self_draft = AUSPEX_SELF_DRAFT_NONE; // one of them drafts
        models.may_self_draft = false;
        Client twice({.models = models, .max_draft_len = kUsualMaxDraftLen, .prefix_cache = false});
        measure_pair({"draft = target", twice, false}, prompts, options, report);
    }
    if (options.json)
        print_json(report);
    else
        print_table(report);
    return kExitOk;
}

} // namespace auspex::cli
