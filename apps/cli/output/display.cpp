// What people see when a command is done: summaries and tables of at most 80 columns (names and paths may be longer).
#include "cli/output/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace auspex::cli {

namespace {

// "12.3" or "n/a"
std::string number(std::optional<double> value, int decimals = 1) {
    return value ? format("%.*f", decimals, *value) : "n/a";
}

std::string counted(uint64_t count, const char* noun) {
    return format("%llu %s%s", static_cast<unsigned long long>(count), noun, count == 1 ? "" : "s");
}

std::string stop_reasons(const RunReport& report) {
    std::string text;
    for (const auto reason :
         {AUSPEX_STOP_EOS, AUSPEX_STOP_TEXT, AUSPEX_STOP_LENGTH, AUSPEX_STOP_CONTEXT, AUSPEX_STOP_CANCELLED}) {
        const auto n = std::count_if(report.completions.begin(), report.completions.end(),
                                     [&](const Completion& completion) { return completion.stop_reason == reason; });
        if (n == 0) continue;
        text += (text.empty() ? "" : ", ") + std::string(stop_reason_name(reason));
        if (report.completions.size() > 1) text += format(" (%lld)", static_cast<long long>(n));
    }
    return text.empty() ? "interrupted" : text;
}

// A piece between quotation marks, its line ends and other control characters escaped.
std::string quoted(const std::string& piece) {
    std::string text = "\"";
    for (const char character : with_visible_bytes(piece)) {
        const auto byte = static_cast<unsigned char>(character);
        if (character == '\n')
            text += "\\n";
        else if (character == '\t')
            text += "\\t";
        else if (character == '"' || character == '\\')
            text += std::string("\\") + character;
        else if (byte < 0x20 || byte == 0x7f)
            text += format("\\x%02x", byte);
        else
            text += character;
    }
    return text + "\"";
}

void print_field(const char* label, const std::string& text) {
    std::printf("  %-18s %s\n", label, text.c_str());
}

void print_device(size_t index, const auspex_device_info& device) {
    std::printf("device %zu: %s\n", index, device.name);
    if (device.usable == 0) print_field("not usable", device.unusable_because);
    print_field("kind", device.kind);
    print_field("driver", device.driver);
    print_field("Vulkan", format_api_version(device.api_version));
    print_field("subgroup size", device.subgroup_size_min == device.subgroup_size_max
                                     ? format("%u", device.subgroup_size)
                                     : format("%u (%u to %u)", device.subgroup_size, device.subgroup_size_min,
                                              device.subgroup_size_max));
    print_field("workgroup", format("%u invocations, %s shared", device.max_workgroup_invocations,
                                    format_bytes(device.max_shared_memory_bytes).c_str()));
    print_field("device memory", format_bytes(device.device_local_bytes));
    print_field("one allocation", "at most " + format_bytes(device.max_allocation_bytes));
    print_field("one binding", "at most " + format_bytes(device.max_storage_buffer_range));
    print_field("timestamps", device.timestamp_period_ns > 0.0f
                                  ? format("every %g ns", static_cast<double>(device.timestamp_period_ns))
                                  : "none");
    print_field("features", device.features[0] != '\0' ? device.features : "none of the optional ones");
    print_field("numerics id", device.numerics_id);
}

void print_model(const std::string& path, const auspex_model_info& model) {
    std::printf("model: %s\n", path.c_str());
    print_field("hidden size", format("%u", model.hidden_size));
    print_field("layers", format("%u", model.n_layers));
    print_field("heads", format("%u of %u, %u for K and V", model.n_heads, model.head_dim, model.n_kv_heads));
    print_field("feed-forward", format("%u", model.ffn_size));
    print_field("vocabulary",
                format("%u, embedding %s", model.vocab_size, model.tied_embedding != 0 ? "tied" : "untied"));
    print_field("positions", format("%u, rope theta %g", model.max_position, static_cast<double>(model.rope_theta)));
    print_field("parameters", format("%.2f M, %s", static_cast<double>(model.n_parameters) * 1e-6, model.dtype));
    print_field("weights", format_bytes(model.weights_bytes));
    print_field("cache per token", format_bytes(model.cache_bytes_per_token));
}

void print_plan(const auspex_memory_plan& plan) {
    std::printf("memory of one sequence, context %u\n", plan.max_context);
    const auto both = [](uint64_t target, uint64_t draft) {
        return draft == 0 ? format_bytes(target) : format_bytes(target) + " target, " + format_bytes(draft) + " draft";
    };
    print_field("weights", both(plan.target_weights, plan.draft_weights));
    print_field("caches", both(plan.target_cache, plan.draft_cache));
    print_field("activations", format_bytes(plan.activations));
    print_field("total", format_bytes(plan.total) + (plan.fits != 0 ? ", fits" : ", does not fit"));
    print_field("device", format_bytes(plan.device_free_bytes) + " free of " + format_bytes(plan.device_bytes));
}

// Whether drafts paid, and that they changed nothing.
std::string verdict(const RunReport& report, const Demonstration& demonstration) {
    constexpr double as_fast = 0.995; // 1.00 where it is printed
    const std::optional<double>& speedup = demonstration.speedup;
    std::string text = report.speculation.draft_n == 0 ? "Nothing was drafted, so nothing came faster"
                       : !speedup                      ? "Nobody knows how fast the stories came"
                       : *speedup < as_fast            ? format("Drafts made the story slower, %.2f times", *speedup)
                                                       : format("Drafts made the story %.2f times as fast", *speedup);
    if (demonstration.first_difference)
        text += format("; the texts DIFFER from token %zu on.", *demonstration.first_difference + 1);
    else
        text += "; both texts are equal bit for bit.";
    return text;
}

} // namespace

std::optional<double> mean_nll(const std::vector<double>& log_probs) {
    if (log_probs.empty()) return std::nullopt;
    double sum = 0.0;
    for (const double log_prob : log_probs)
        sum -= log_prob;
    return sum / static_cast<double>(log_probs.size());
}

std::optional<double> per_second(uint64_t count, std::optional<double> milliseconds) {
    if (!milliseconds || *milliseconds <= 0.0) return std::nullopt;
    return static_cast<double>(count) * 1e3 / *milliseconds;
}

std::optional<double> ratio(uint64_t count, uint64_t of) {
    if (of == 0) return std::nullopt;
    return static_cast<double>(count) / static_cast<double>(of);
}

const char* stop_reason_name(auspex_stop_reason reason) {
    switch (reason) {
    case AUSPEX_STOP_EOS:
        return "eos";
    case AUSPEX_STOP_LENGTH:
        return "length";
    case AUSPEX_STOP_CONTEXT:
        return "context";
    case AUSPEX_STOP_TEXT:
        return "stop_text";
    default:
        return "interrupted";
    }
}

void print_line(const char* label, const std::string& text) {
    std::fprintf(stderr, "%-12s %s\n", label, text.c_str());
}

void print_summary(const RunReport& report) {
    const auspex_engine_info& engine = report.engine;
    print_line("device", engine.device_name);
    print_line("driver", std::string(engine.driver) + ", Vulkan " + format_api_version(engine.api_version));
    print_line("prompt", counted(report.prompt_tokens.size(), "token") + ", " + number(report.prompt_ms) + " ms, " +
                             number(per_second(report.prompt_tokens.size(), report.prompt_ms)) + " tok/s");
    print_line("generation", counted(report.speculation.predicted_n, "token") + ", " + number(report.predicted_ms) +
                                 " ms, " + number(per_second(report.speculation.predicted_n, report.predicted_ms)) +
                                 " tok/s; first token after " + number(report.first_token_ms) + " ms");
    print_speculation(report.speculation, report.options.sampling);
    print_line("GPU time", "draft " + number(report.draft_ms) + " ms, verify " + number(report.verify_ms) +
                               " ms, accept " + number(report.accept_ms) + " ms");
    print_line("stop", stop_reasons(report) + format("; seed %llu", static_cast<unsigned long long>(report.seed)));
    const SamplingOptions& sampling = report.options.sampling;
    if (sampling.temperature > 0.0 && sampling.draft_len == AUSPEX_DRAFT_LEN_AUTO && sampling.drafter != AUSPEX_DRAFTER_NONE &&
        sampling.acceptance == AUSPEX_ACCEPT_REJECTION)
        print_line("", "to repeat a seed's text: --acceptance coupled, or a fixed --draft-len");
    if (!report.demonstration) return;
    print_line("plain", "the same story without drafts: " + number(report.demonstration->plain_per_second) + " tok/s");
    std::fprintf(stderr, "%s\n", verdict(report, *report.demonstration).c_str());
}

void print_table(const BenchReport& report) {
    std::printf("%s, %s, Vulkan %s\n", report.engine.device_name, report.engine.driver,
                format_api_version(report.engine.api_version).c_str());
    std::printf("\n");
    print_throughput(report.speed);
    print_passes(report.speed);
    if (report.results.empty()) return;
    std::printf("%zu tokens of prompt, %u generated, temperature %g, medians of %u\n\n", report.prompt_n,
                report.options.n_predict, report.options.sampling.temperature, report.options.n_repetitions);
    std::printf("%-9s %8s %6s %6s %6s %7s %5s %6s %8s %9s\n", "K", "tok/s", "stddev", "accept", "alpha", "tok/rnd", "c",
                "v(K+1)", "speed-up", "predicted");
    for (const BenchResult& result : report.results) {
        std::printf("%-9s %8.1f %6.1f %6s %6s %7.2f %5s %6s %8s %9s\n", result.way.name().c_str(),
                    result.tokens_per_second, result.stddev, number(result.acceptance_rate, 3).c_str(),
                    number(result.alpha, 3).c_str(), result.tokens_per_round, number(result.c, 2).c_str(),
                    number(result.v, 2).c_str(), number(result.speedup, 2).c_str(),
                    number(result.predicted_speedup, 2).c_str());
    }
    for (const BenchResult& result : report.results)
        if (result.round_over_passes_gpu && result.round_over_passes_wall)
            std::printf("%s%s: round / its passes: GPU %.3f, wall %.3f\n", &result == &report.results.front() ? "\n" : "",
                        result.way.name().c_str(), *result.round_over_passes_gpu, *result.round_over_passes_wall);
    if (const BenchResult& last = report.results.back(); last.cpu_us_per_round && last.first_token_ms)
        std::printf("\n%s: %.0f us of this thread per round, first token after %.1f ms\n", last.way.name().c_str(),
                    *last.cpu_us_per_round, *last.first_token_ms);
    if (report.options.simulated_alpha)
        std::printf("\nSIMULATED: each draft is accepted with probability %g, whatever it is; the texts mean\n"
                    "nothing, the work is that of real rounds\n",
                    *report.options.simulated_alpha);
    if (!report.options.sampling.is_lossless())
        std::printf("\nNOT LOSSLESS: with --lenience %g the texts are not distributed as the target's\n",
                    report.options.sampling.lenience);
    if (!report.results.empty() && report.results.front().weights_gb_per_second)
        std::printf("\nplain decoding reads %.2f GB/s of weights\n", *report.results.front().weights_gb_per_second);
}

void print_listing(const InfoReport& report) {
    for (size_t index = 0; index < report.devices.size(); ++index)
        print_device(index, report.devices[index]);
    if (report.devices.empty()) std::printf("no Vulkan device\n");
    for (const auto& [path, model] : report.models)
        print_model(path, model);
    if (report.plan) print_plan(*report.plan);
    if (report.tuning) print_tuning(*report.tuning);
}

void print_listing(const TokenizeReport& report) {
    for (size_t i = 0; i < report.ids.size(); ++i)
        std::printf("%6u  %s\n", report.ids[i], quoted(report.pieces[i]).c_str());
}

void print_listing(const ScoreReport& report) {
    const std::optional<double> nll = mean_nll(report.log_probs);
    std::printf("nll         %s\n", nll ? format("%.6f", *nll).c_str() : "n/a");
    std::printf("perplexity  %s\n", nll ? format("%.6f", std::exp(*nll)).c_str() : "n/a");
    std::printf("tokens      %zu\n", report.tokens.size());
}

} // namespace auspex::cli
