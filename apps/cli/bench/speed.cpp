// Measures; rows take turns, so that slow changes of the machine meet all of them alike.
#include "cli/bench/speed.h"

#include "cli/bench/measurement.h"
#include "cli/common/output/figures.h"
#include "cli/common/system/terminal.h"

#include <algorithm>
#include <set>

namespace auspex::cli {

namespace {

constexpr uint32_t kUsualPrompt = 512, kUsualContext = 4096, kLeastPrompt = 16;
constexpr uint32_t kCopyRepetitions = 9, kPassRepetitions = 5;

void run_to_end(Client& client) {
    while (!client.step()) {
        if (interrupted()) throw Failure(kExitInterrupted, "interrupted");
        client.wait();
    }
}

// Milliseconds that a prompt of n tokens after `depth` others takes, up to the first generated token.
double prompt_ms(Client& client, const BenchOptions& options, uint32_t n, uint32_t depth) {
    const std::vector<uint32_t> tokens = filler_tokens(depth + n, client.info().vocab_size);
    const std::vector<uint32_t> before(tokens.begin(), tokens.begin() + depth), text(tokens.begin() + depth, tokens.end());
    SequenceDesc desc(options.sampling, options.seed);
    desc->drafter = AUSPEX_DRAFTER_NONE;
    desc->draft_len = 0;
    desc->ignore_eos = 1;
    desc->max_tokens = depth > 0 ? AUSPEX_HOLD : 1;
    desc.set_prompt(depth > 0 ? before : text);
    const auspex_sequence sequence = client.create(*desc);
    if (depth > 0) {
        run_to_end(client);
        desc->max_tokens = 1;
        desc.set_prompt(text);
        client.append(sequence, *desc);
    }
    run_to_end(client);
    const double ms = client.stats(sequence).first_token_ms;
    client.destroy(sequence);
    return ms;
}

TrialSetting generation(Client& client, const BenchOptions& options, uint32_t n, uint32_t depth) {
    return {.sampling = options.sampling,
            .prompt_tokens = filler_tokens(std::max(depth, 1u), client.info().vocab_size),
            .n_predict = n};
}

struct Samples {
    std::vector<double> per_second{}, first_token_ms{}, round_ms{}, cpu_us{};
};

void measure_once(Client& client, const BenchOptions& options, const ThroughputRow& row, Samples& samples) {
    if (row.n_prompt > 0) {
        const double ms = prompt_ms(client, options, row.n_prompt, row.depth);
        samples.first_token_ms.push_back(ms);
        samples.per_second.push_back(ms > 0.0 ? row.n_prompt * 1e3 / ms : 0.0);
        return;
    }
    const Trial trial = complete_once(client, generation(client, options, row.n_generated, row.depth), {}, options.seed);
    samples.per_second.push_back(trial.tokens_per_second);
    if (trial.tokens_per_second > 0.0) samples.round_ms.push_back(1e3 / trial.tokens_per_second);
    if (trial.cpu_us_per_round) samples.cpu_us.push_back(*trial.cpu_us_per_round);
}

std::optional<double> median_of(const std::vector<double>& values) {
    return values.empty() ? std::nullopt : std::optional(median(values));
}

// The rows asked for. By default a prompt of 512, or what is left of a shorter context.
std::vector<ThroughputRow> rows_of(const Client& client, const BenchOptions& options) {
    const uint32_t context = client.info().max_context;
    std::vector<ThroughputRow> rows;
    const auto add = [&](const char* flag, const char* kind, uint32_t n, uint32_t depth) {
        ThroughputRow row{.test = kind + std::to_string(n), .depth = depth};
        const bool is_prompt = std::string_view(kind) == "pp";
        (is_prompt ? row.n_prompt : row.n_generated) = n;
        const uint64_t needed = uint64_t{n} + std::max(depth, is_prompt ? 0u : 1u) + (is_prompt ? 1 : 0);
        if (needed > context)
            throw Failure(kExitCapacity, format("%s %u: after %u tokens expected at most %u to fit the context of %u; "
                                                "lower it or raise -c",
                                                flag, n, depth, context > depth + 1 ? context - depth - 1 : 0, context));
        rows.push_back(std::move(row));
    };
    for (const uint32_t depth : options.depths) {
        std::vector<uint32_t> prompts = options.n_prompt.value_or(std::vector<uint32_t>{});
        if (!options.n_prompt) {
            uint32_t usual = kUsualPrompt;
            while (usual + depth + 1 > context && usual > kLeastPrompt)
                usual /= 2;
            if (usual + depth + 1 <= context) prompts.push_back(usual);
        }
        for (const uint32_t n : prompts)
            add("-p", "pp", n, depth);
        for (const uint32_t n : options.n_generate)
            add("-n", "tg", n, depth);
    }
    return rows;
}

std::vector<PassRow> measure_passes(Client& client, const BenchOptions& options, StatusLine& status) {
    std::set<uint32_t> row_counts(options.pass_rows.begin(), options.pass_rows.end());
    std::vector<PassRow> passes;
    if (row_counts.empty()) return passes;
    row_counts.insert(1); // v(n) and the floor need it
    const auto measure = [&](PassRow row) {
        auspex_pass_desc desc;
        auspex_pass_desc_init(&desc, sizeof desc);
        desc.of_draft = row.of_draft ? 1 : 0;
        desc.is_prompt = row.is_prompt ? 1 : 0;
        desc.n_rows = row.n_rows;
        desc.depth = row.depth;
        desc.repetitions = kPassRepetitions;
        desc.with_stages = options.with_stages ? 1 : 0;
        status.show("pass: " + row.name());
        row.times = client.measure_pass(desc);
        passes.push_back(row);
    };
    std::set<uint32_t> prompts; // as much of each as one pass holds
    for (const uint32_t n : options.n_prompt.value_or(std::vector<uint32_t>{kUsualPrompt}))
        if (options.with_stages) prompts.insert(std::min(n, client.info().prompt_rows));
    for (const uint32_t depth : options.depths) {
        for (const bool of_draft : {false, true}) {
            if (of_draft && depth >= client.info().draft_context) continue;
            for (const uint32_t n_rows : row_counts)
                if (!of_draft || n_rows == 1) measure({.of_draft = of_draft, .n_rows = n_rows, .depth = depth}); // drafts come one at a time
            for (const uint32_t n_rows : prompts)
                if (n_rows > 1 && depth + n_rows <= client.info().max_context)
                    measure({.of_draft = of_draft, .n_rows = n_rows, .depth = depth, .is_prompt = true});
        }
    }
    return passes;
}

void relate(SpeedReport& report) {
    const double copied = report.copy.gb_per_second;
    for (PassRow& row : report.passes) {
        const PassRow* one = report.find_pass(row.of_draft, 1, row.depth);
        if (one != nullptr && one->ms() > 0.0 && row.n_rows > 1 && !row.is_prompt) row.v = row.ms() / one->ms();
        if (row.ms() <= 0.0) continue;
        row.gb_per_second = static_cast<double>(row.times.weights_bytes + row.times.cache_bytes) * 1e-6 / row.ms();
        if (copied > 0.0) row.floor_percent = 100.0 * *row.gb_per_second / copied;
    }
}

} // namespace

std::vector<uint32_t> filler_tokens(uint32_t count, uint32_t vocab_size) {
    std::vector<uint32_t> tokens;
    tokens.reserve(count);
    for (uint32_t i = 0; i < count; ++i)
        tokens.push_back(static_cast<uint32_t>((uint64_t{i} * 7919 + 1) % vocab_size));
    return tokens;
}

uint32_t context_needed(const BenchOptions& options) {
    uint64_t deepest = 0, longest = 0;
    for (const uint32_t depth : options.depths)
        deepest = std::max<uint64_t>(deepest, depth);
    for (const uint32_t n : options.n_prompt.value_or(std::vector<uint32_t>{kUsualPrompt}))
        longest = std::max<uint64_t>(longest, n);
    for (const uint32_t n : options.n_generate)
        longest = std::max<uint64_t>(longest, n);
    const uint64_t needed = deepest + longest + AUSPEX_MAX_DRAFT_LEN + 1;
    return needed > kUsualContext ? static_cast<uint32_t>(std::min<uint64_t>(needed, UINT32_MAX)) : 0;
}

SpeedReport measure_speed(Client& client, const BenchOptions& options) {
    SpeedReport report;
    report.throughput = rows_of(client, options);
    StatusLine status;
    if (!options.pass_rows.empty()) {
        status.show("copy");
        report.copy = client.measure_copy(kCopyRepetitions);
    }
    report.passes = measure_passes(client, options, status);
    relate(report);

    std::vector<Samples> samples(report.throughput.size());
    for (uint32_t repetition = 0; repetition <= options.n_repetitions; ++repetition)
        for (size_t i = 0; i < samples.size(); ++i) {
            status.show(format("%u of %u, ", repetition, options.n_repetitions) + report.throughput[i].test);
            Samples ignored; // repetition 0 warms up
            measure_once(client, options, report.throughput[i], repetition == 0 ? ignored : samples[i]);
        }
    for (size_t i = 0; i < samples.size(); ++i) {
        ThroughputRow& row = report.throughput[i];
        row.samples = samples[i].per_second;
        row.tokens_per_second = median(samples[i].per_second);
        row.stddev = standard_deviation(samples[i].per_second);
        row.first_token_ms = median_of(samples[i].first_token_ms);
        row.round_ms = median_of(samples[i].round_ms);
        row.cpu_us_per_round = median_of(samples[i].cpu_us);
        const PassRow* pass = report.find_pass(false, 1, row.depth);
        if (pass == nullptr) continue;
        if (row.n_generated > 0) { // keys and values grow while it generates: those of the middle
            const double per_position = static_cast<double>(pass->times.cache_bytes) / (pass->depth + 1);
            const double bytes = static_cast<double>(pass->times.weights_bytes) +
                                 per_position * (row.depth + row.n_generated / 2.0);
            row.gb_per_second = bytes * row.tokens_per_second * 1e-9;
            if (report.copy.gb_per_second > 0.0)
                row.floor_percent = 100.0 * *row.gb_per_second / report.copy.gb_per_second;
        } else { // the head reads the last row alone; counted for all of them it would flatter
            auspex_pass_desc desc;
            auspex_pass_desc_init(&desc, sizeof desc);
            desc.is_prompt = 1;
            desc.repetitions = 1;
            const double layers = client.measure_pass(desc).flops;
            row.tflops = layers * row.tokens_per_second * 1e-12;
            if (options.peak_tflops) row.peak_percent = 100.0 * *row.tflops / *options.peak_tflops;
        }
    }
    return report;
}

void compare_with_passes(const SpeedReport& report, const BenchOptions& options, std::vector<BenchResult>& results) {
    const uint32_t depth = options.depths.front();
    for (BenchResult& result : results) {
        const uint32_t draft_len = result.way.draft_len;
        const bool is_plain = result.way.is_plain();
        if (!is_plain && (!drafts_by_pass_alone(result.way.drafter) || draft_len == AUSPEX_DRAFT_LEN_AUTO)) continue;
        const PassRow* verify = report.find_pass(false, draft_len + 1, depth);
        const PassRow* draft = report.find_pass(true, 1, depth);
        if (verify == nullptr || (!is_plain && draft == nullptr)) continue;
        const double passes_ms = verify->ms() + (is_plain ? 0.0 : draft_len * draft->ms());
        if (passes_ms <= 0.0) continue;
        if (result.verify_ms) result.round_over_passes_gpu = (*result.draft_ms + *result.verify_ms + *result.accept_ms) / passes_ms;
        if (result.round_ms) result.round_over_passes_wall = *result.round_ms / passes_ms;
    }
}

} // namespace auspex::cli
