// auspex bench --tables: tables 1, 3 and 4 of Leviathan et al. 2023 ("Fast Inference from Transformers via Speculative
// Decoding") for the user's own pair. Table 3: α of several drafters. Table 4: expected and measured improvement by γ.
// Table 1: operations and tokens per round by theory, beside what this pair's rounds gave.
#include "cli/bench/comparison.h"
#include "cli/bench/output/plot.h"
#include "cli/bench/output/table.h"
#include "cli/bench/studies/overlap.h"
#include "cli/common/output/figures.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace auspex::cli {

namespace {

constexpr std::array kTemperatures = {0.0, 1.0};
constexpr uint32_t kLongestDraft = 10;
constexpr uint32_t kCorpusTexts = 8;
constexpr uint64_t kCorpusSeeds = 1000000; // apart from the seeds that are measured

// Σ over positions.
struct Mean {
    double sum = 0.0;
    uint64_t n = 0;
    void add(double value) { sum += value, ++n; }
    std::optional<double> value() const { return n == 0 ? std::nullopt : std::optional(sum / static_cast<double>(n)); }
};

// α of one drafter, by temperature: from the distributions at every position, and from the drafts that rounds tested.
struct Alpha {
    std::string drafter;
    auspex_drafter way = AUSPEX_DRAFTER_NONE;
    std::array<Mean, kTemperatures.size()> from_scores{};
    std::array<SpeculationReport, kTemperatures.size()> from_rounds{};
};

// One for each search, then the model.
std::vector<Alpha> drafters_of_rounds() {
    std::vector<Alpha> alphas;
    for (const auspex_drafter_info& row : drafters())
        if (row.searches != 0 && row.may_use_model == 0) alphas.push_back({row.name, row.drafter});
    alphas.push_back({drafter_name(AUSPEX_DRAFTER_MODEL), AUSPEX_DRAFTER_MODEL});
    return alphas;
}

class Study {
  public:
    Study(Client& target, Client& draft, const BenchOptions& options)
        : target_(target), draft_(draft), options_(options), counts_(target.info().vocab_size) {
        setting_.sampling = options.sampling;
        setting_.n_predict = options.n_predict;
        setting_.prompt_tokens = target.tokenize(*options.prompt.text);
        check_biases(options.sampling, target.info().vocab_size);
        for (const Client* one : {&target, &draft}) check_room(setting_.prompt_tokens.size(), setting_.n_predict, one->info());
        if (draft.info().vocab_size < target.info().vocab_size) // it reads the target's texts by itself
            throw Failure(kExitFile, format("%s: found %u tokens, expected the target's %u: --tables compares drafts that know all of them",
                                            options.models.draft.c_str(), draft.info().vocab_size, target.info().vocab_size));
    }

    std::vector<Table> run() {
        gather_corpus();
        measure_overlaps();
        for (size_t t = 0; t < kTemperatures.size(); ++t)
            measure_speed(t);
        std::vector<Table> tables = {alpha_table()};
        for (size_t t = 0; t < kTemperatures.size(); ++t)
            tables.push_back(improvement_table(t));
        tables.push_back(operations_table());
        tables.push_back(rounds_table());
        return tables;
    }
    std::vector<PlotSeries> plot() const {
        std::vector<PlotSeries> series;
        for (size_t t = 0; t < kTemperatures.size(); ++t)
            series.push_back({format("temperature %g", kTemperatures[t]), speeds_[t]});
        return series;
    }

  private:
    // Prompt and answer of the target alone.
    std::vector<uint32_t> write(double temperature, uint64_t seed) {
        setting_.sampling.temperature = temperature;
        std::vector<uint32_t> tokens = setting_.prompt_tokens;
        for (const auspex_token& token : complete_once(target_, setting_, {}, seed).tokens)
            tokens.push_back(token.id);
        return tokens;
    }

    void gather_corpus() {
        for (uint32_t i = 0; i < kCorpusTexts; ++i) {
            status_.show(format("corpus, text %u of %u", i + 1, kCorpusTexts));
            const std::vector<uint32_t> tokens = write(1.0, kCorpusSeeds + options_.seed + i);
            counts_.add(std::span(tokens).subspan(setting_.prompt_tokens.size()));
        }
    }

    void measure_overlaps() {
        for (size_t t = 0; t < kTemperatures.size(); ++t) {
            const uint32_t n_texts = kTemperatures[t] == 0.0 ? 1 : options_.n_repetitions; // greedy texts are all alike
            for (uint32_t i = 0; i < n_texts; ++i) {
                status_.show(format("overlaps at temperature %g, text %u of %u", kTemperatures[t], i + 1, n_texts));
                measure_text(t, write(kTemperatures[t], options_.seed + i));
                for (Alpha& one : drafting_) one.from_rounds[t].add(complete_once(target_, setting_, {one.way, 1}, options_.seed + i).stats);
            }
        }
    }

    void measure_text(size_t t, const std::vector<uint32_t>& tokens) {
        const double temperature = kTemperatures[t];
        const size_t first = setting_.prompt_tokens.size() - 1;
        const auto target_rows = logits_after(target_, tokens, first),
                   draft_rows = logits_after(draft_, tokens, first);
        const std::vector<float> unigram = sharpened(counts_.unigram(), temperature);
        for (size_t i = 0; i < target_rows.size(); ++i) {
            const std::vector<float> p = distribution(target_rows[i], temperature);
            unigram_.from_scores[t].add(overlap(p, unigram));
            bigram_.from_scores[t].add(overlap(p, sharpened(counts_.bigram(tokens[first + i]), temperature)));
            const size_t shared = std::min(draft_rows[i].size(), p.size());
            drafting_.back().from_scores[t].add(overlap(p, distribution(std::span(draft_rows[i]).first(shared), temperature)));
        }
    }

    void measure_speed(size_t t) {
        setting_.sampling.temperature = kTemperatures[t];
        std::vector<Way> ways = {{}};
        for (uint32_t draft_len = 1; draft_len <= kLongestDraft; ++draft_len)
            ways.push_back({AUSPEX_DRAFTER_MODEL, draft_len});
        speeds_[t] = compare_ways(target_, setting_, ways, options_.n_repetitions, options_.seed,
                                  format("temperature %g, ", kTemperatures[t]));
    }

    Table alpha_table() const {
        Table table{
            .key = "alpha",
            .title = "Table 3: α by drafter.",
            .note = format("α = mean Σ min(p, q) over the %u tokens of each text the target wrote. Unigrams (add-one) "
                           "and bigrams (Witten-Bell) were counted in %u other texts of it, %llu tokens. \"Rounds\": "
                           "mean min(1, p/q) of the drafts that rounds with K = 1 tested. Searches draft only where "
                           "they find something; \"drafted\" is that share of the rounds. Temperature "
                           "applies to p and q alike.",
                           options_.n_predict, kCorpusTexts, static_cast<unsigned long long>(counts_.token_count())),
            .columns = {{"drafter", "drafter"},
                        {"alpha_t0", "T = 0"},
                        {"alpha_t1", "T = 1"},
                        {"rounds_t0", "rounds, T = 0"},
                        {"rounds_t1", "rounds, T = 1"},
                        {"drafted_t0", "drafted, T = 0"},
                        {"drafted_t1", "drafted, T = 1"}}};
        std::vector<const Alpha*> alphas = {&unigram_, &bigram_};
        for (const Alpha& alpha : drafting_) alphas.push_back(&alpha);
        for (const Alpha* alpha : alphas) {
            std::vector<TableCell> row = {TableCell(alpha->drafter)};
            for (const Mean& mean : alpha->from_scores)
                row.emplace_back(mean.value());
            for (const SpeculationReport& rounds : alpha->from_rounds)
                row.emplace_back(rounds.alpha());
            for (const SpeculationReport& rounds : alpha->from_rounds)
                row.emplace_back(ratio(rounds.rounds - rounds.drafter_rounds[0], rounds.rounds));
            table.rows.push_back(row);
        }
        return table;
    }

    Table improvement_table(size_t t) const {
        Table table{
            .key = format("improvement_t%g", kTemperatures[t]),
            .title = format("Table 4: expected and measured improvement by γ, temperature %g.", kTemperatures[t]),
            .note = "Theorem 3.8: (1 - α^(γ+1)) / ((1 - α)(γc + 1)); with v: γc + v(γ+1) for what a pass over γ+1 rows "
                    "costs; with the rest: what a round takes besides its passes on both sides. α here is that of "
                    "the rounds.",
            .columns = {{"gamma", "γ", 0},
                        {"alpha", "α"},
                        {"c", "c"},
                        {"v", "v(γ+1)"},
                        {"theorem_3_8", "theorem 3.8"},
                        {"with_v", "with v"},
                        {"with_rest", "with the rest"},
                        {"measured", "measured"}}};
        for (const BenchResult& result : speeds_[t]) {
            if (result.way.is_plain()) continue;
            std::optional<double> theorem;
            const uint32_t gamma = result.way.draft_len;
            if (result.alpha && result.c) theorem = expected_tokens(*result.alpha, gamma) / (gamma * *result.c + 1.0);
            table.rows.push_back({static_cast<double>(gamma), result.alpha, result.c, result.v, theorem,
                                  result.theorem_speedup, result.predicted_speedup, result.speedup});
        }
        return table;
    }

    Table operations_table() const {
        // ĉ, operations of a draft token / of a target token, by the weights that each reads.
        const double c_hat = static_cast<double>(target_.info().draft_weights_bytes) /
                             static_cast<double>(std::max<uint64_t>(1, target_.info().target_weights_bytes));
        Table table{.key = "operations",
                    .title = "Table 1: operations and speed by α and γ.",
                    .note = format("Tokens per round: equation 1, (1 - α^(γ+1)) / (1 - α); operations: theorem 3.11, "
                                   "(γĉ + γ + 1) / tokens. ĉ = %.3f is this pair's draft / target weights.",
                                   c_hat),
                    .columns = {{"alpha", "α", 1},
                                {"gamma", "γ", 0},
                                {"operations_free_draft", "operations, ĉ = 0"},
                                {"operations", "operations, this ĉ"},
                                {"tokens_per_round", "tokens per round = speed-up, c = 0, v = 1"}}};
        for (const double alpha : {0.6, 0.7, 0.8, 0.9})
            for (const uint32_t gamma : {2u, 3u, 5u, 10u}) {
                const double tokens = expected_tokens(alpha, gamma);
                table.rows.push_back({alpha, static_cast<double>(gamma), (gamma + 1.0) / tokens,
                                      (gamma * c_hat + gamma + 1.0) / tokens, tokens});
            }
        return table;
    }

    Table rounds_table() const {
        Table table{.key = "tokens_per_round",
                    .title = "Equation 1 on this pair: tokens per round by γ.",
                    .note =
                        "Expected from the model's α of table 3, as if every draft were accepted with that probability "
                        "whatever came before.",
                    .columns = {{"gamma", "γ", 0}}};
        for (const double temperature : kTemperatures) {
            table.columns.push_back({format("expected_t%g", temperature), format("expected, T = %g", temperature)});
            table.columns.push_back({format("measured_t%g", temperature), format("measured, T = %g", temperature)});
        }
        for (uint32_t gamma = 1; gamma <= kLongestDraft; ++gamma) {
            std::vector<TableCell> row = {static_cast<double>(gamma)};
            for (size_t t = 0; t < kTemperatures.size(); ++t) {
                const auto alpha = drafting_.back().from_scores[t].value();
                row.emplace_back(alpha ? std::optional(expected_tokens(*alpha, gamma)) : std::nullopt);
                row.emplace_back(speeds_[t].at(gamma).tokens_per_round);
            }
            table.rows.push_back(row);
        }
        return table;
    }

    Client& target_;
    Client& draft_; // the draft model as a target, for its logits
    const BenchOptions& options_;
    TrialSetting setting_;
    NgramCounts counts_;
    Alpha unigram_{"unigram"}, bigram_{"bigram"};
    std::vector<Alpha> drafting_ = drafters_of_rounds(); // each drafter that this program has; last the model
    std::array<std::vector<BenchResult>, kTemperatures.size()> speeds_; // plain, then γ = 1 …
    StatusLine status_;
};

} // namespace

int bench_tables(const BenchOptions& options) {
    Client target({.models = options.models, .max_draft_len = kLongestDraft});
    ModelOptions draft_alone = options.models;
    draft_alone.target = options.models.draft;
    draft_alone.target_weights = options.models.draft_weights;
    draft_alone.draft.clear();
    draft_alone.context = target.info().draft_context;
    Client draft({.models = draft_alone});

    std::vector<Table> tables;
    std::vector<PlotSeries> plot;
    {
        Study study(target, draft, options);
        tables = study.run();
        plot = study.plot();
    }
    print_tables(target.info(), options, tables);
    if (options.plot) write_plot(*options.plot, plot);
    return kExitOk;
}

} // namespace auspex::cli
