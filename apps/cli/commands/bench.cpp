// auspex bench: plain and speculative decoding, alternately in one process, and what theory expects of them.
#include "cli/client.h"
#include "cli/output/progress_bar.h"
#include "cli/output/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace auspex::cli {

namespace {

constexpr size_t kSyntheticPromptTokens = 16;

// One draft_len, summed over the repetitions.
struct Tally {
    uint32_t draft_len = 0;
    std::vector<double> tokens_per_second; // one per repetition
    uint64_t predicted_n = 0, draft_n = 0, draft_n_accepted = 0, n_corrections = 0, rounds = 0;
    auspex_round_times times{};
    bool has_gpu_times = true;
};

class Bench {
  public:
    Bench(Client& client, const BenchOptions& options, std::vector<uint32_t> prompt_tokens)
        : client_(client), options_(options), prompt_tokens_(std::move(prompt_tokens)) {
        tallies_.emplace_back();
        for (const uint32_t draft_len : options.draft_lens)
            tallies_.emplace_back().draft_len = draft_len;
    }

    // Plain, K1, K2, …, plain again: slow changes of the machine meet all of them alike.
    std::vector<Tally> measure() {
        for (uint32_t repetition = 0; repetition <= options_.n_repetitions; ++repetition) {
            for (Tally& tally : tallies_) {
                show_progress(repetition, tally.draft_len);
                const bool is_warm_up = repetition == 0;
                Tally ignored;
                ignored.draft_len = tally.draft_len;
                complete_once(is_warm_up ? 0 : repetition - 1, is_warm_up ? ignored : tally);
            }
        }
        if (shows_progress_) std::fputs("\r\033[K", stderr);
        return tallies_;
    }

  private:
    void complete_once(uint32_t repetition, Tally& tally) {
        auspex_sequence_desc desc;
        auspex_sequence_desc_init(&desc, sizeof desc);
        desc.prompt_tokens = prompt_tokens_.data();
        desc.prompt_token_count = prompt_tokens_.size();
        desc.max_tokens = options_.n_predict;
        desc.temperature = static_cast<float>(options_.temperature);
        desc.seed = options_.seed + repetition;
        desc.draft_len = tally.draft_len;
        desc.ignore_eos = 1;

        client_.take_round_times(tally.draft_len);
        const auspex_sequence sequence = client_.create(desc);
        std::vector<auspex_token> tokens;
        std::string text;
        bool is_finished = false;
        while (!is_finished) {
            is_finished = client_.step();
            client_.read(sequence, tokens, text);
            if (!is_finished) client_.wait();
        }
        add(client_.stats(sequence), tokens, tally);
        client_.destroy(sequence);
    }

    void add(const auspex_sequence_stats& stats, const std::vector<auspex_token>& tokens, Tally& tally) {
        tally.tokens_per_second.push_back(per_second(stats.predicted_n, stats.predicted_ms).value_or(0.0));
        tally.predicted_n += stats.predicted_n;
        tally.draft_n += stats.draft_n;
        tally.draft_n_accepted += stats.draft_n_accepted;
        tally.rounds += stats.rounds;
        tally.n_corrections +=
            static_cast<uint64_t>(std::count_if(tokens.begin(), tokens.end(), [](const auspex_token& token) {
                return token.origin == AUSPEX_TOKEN_CORRECTION;
            }));
        const auspex_round_times times = client_.take_round_times(tally.draft_len);
        tally.has_gpu_times = tally.has_gpu_times && times.verify_ms >= 0.0;
        tally.times.rounds += times.rounds;
        tally.times.draft_ms += times.draft_ms;
        tally.times.verify_ms += times.verify_ms;
        tally.times.accept_ms += times.accept_ms;
        tally.times.wall_ms += times.wall_ms;
    }

    void show_progress(uint32_t repetition, uint32_t draft_len) const {
        if (!shows_progress_) return;
        const std::string round = repetition == 0 ? "warm-up" : format("%u of %u", repetition, options_.n_repetitions);
        std::fprintf(stderr, "\r\033[K%s, draft_len %u", round.c_str(), draft_len);
        std::fflush(stderr);
    }

    Client& client_;
    const BenchOptions& options_;
    std::vector<uint32_t> prompt_tokens_;
    std::vector<Tally> tallies_;
    bool shows_progress_ = can_redraw();
};

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const size_t middle = values.size() / 2;
    return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2.0;
}

double standard_deviation(const std::vector<double>& values) { // of the sample; 0 for one value
    if (values.size() < 2) return 0.0;
    const auto n = static_cast<double>(values.size());
    double mean = 0.0, squares = 0.0;
    for (const double value : values)
        mean += value / n;
    for (const double value : values)
        squares += (value - mean) * (value - mean);
    return std::sqrt(squares / (n - 1.0));
}

// (1 − α^(K+1)) / (1 − α): Leviathan et al. 2023, equation 1.
double expected_tokens(double alpha, uint32_t draft_len) {
    double sum = 0.0;
    for (uint32_t i = 0; i <= draft_len; ++i)
        sum += std::pow(alpha, i);
    return sum;
}

// What one way of decoding did and took, per round.
BenchResult measured(const Tally& tally) {
    BenchResult result;
    result.draft_len = tally.draft_len;
    result.samples = tally.tokens_per_second;
    result.tokens_per_second = median(tally.tokens_per_second);
    result.stddev = standard_deviation(tally.tokens_per_second);
    result.acceptance_rate = ratio(tally.draft_n_accepted, tally.draft_n);
    result.tokens_per_round = ratio(tally.predicted_n, tally.rounds).value_or(0.0);
    // Every draft that was tested was accepted or met a correction; those behind a correction were never tested, and
    // a round cut short by a limit has none. So this is the maximum likelihood estimate under that censoring.
    result.alpha = ratio(tally.draft_n_accepted, tally.draft_n_accepted + tally.n_corrections);
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
    result.v = *result.verify_ms / *plain.verify_ms;
    if (result.draft_len > 0) result.c = *result.draft_ms / result.draft_len / *plain.verify_ms;
    if (result.draft_len > 0 && !result.alpha) return;

    const double expected = expected_tokens(result.alpha.value_or(0.0), result.draft_len);
    result.theorem_speedup = expected / (result.draft_len * result.c.value_or(0.0) + *result.v);
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

void check_room(size_t prompt_n, const BenchOptions& options, const auspex_engine_info& engine) {
    if (prompt_n + options.n_predict > engine.max_context)
        throw Failure(kExitCapacity,
                      format("-n %u: with %zu tokens of prompt expected at most %zu to fit the context "
                             "of %u; lower -n or raise -c",
                             options.n_predict, prompt_n,
                             engine.max_context > prompt_n ? engine.max_context - prompt_n : 0, engine.max_context));
}

} // namespace

int bench(const BenchOptions& options) {
    const auspex_synthetic_models synthetic = synthetic_models(options);
    Client::Request request{options.models};
    if (options.target_shape || options.draft_shape) request.synthetic = &synthetic;
    for (const uint32_t draft_len : options.draft_lens)
        request.max_draft_len = std::max(request.max_draft_len, draft_len);
    Client client(request);

    const std::vector<uint32_t> prompt_tokens =
        options.target_shape ? synthetic_prompt(client.info().vocab_size) : client.tokenize(options.prompt);
    check_room(prompt_tokens.size(), options, client.info());

    BenchReport report{.engine = client.info(), .options = options, .prompt_n = prompt_tokens.size()};
    for (const Tally& tally : Bench(client, options, prompt_tokens).measure())
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
