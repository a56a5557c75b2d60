// The comparison of bench as the table that people see, and as JSON.
#include "cli/bench/output/report.h"

#include "cli/common/output/figures.h"
#include "cli/common/output/json.h"

#include <cstdio>

namespace auspex::cli {

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

void print_json(const BenchReport& report) {
    Json results = Json::array();
    for (const BenchResult& result : report.results) {
        const bool chooses_len = result.way.draft_len == AUSPEX_DRAFT_LEN_AUTO;
        results.push_back({{"test", result.way.is_plain() ? "plain" : "spec"},
                           {"draft_len", chooses_len ? Json() : Json(result.way.draft_len)},
                           {"tokens_per_second", result.tokens_per_second},
                           {"stddev", result.stddev},
                           {"samples", result.samples},
                           {"acceptance_rate", or_null(result.acceptance_rate)},
                           {"tokens_per_round", result.tokens_per_round},
                           {"c", or_null(result.c)},
                           {"v", or_null(result.v)},
                           {"speedup", or_null(result.speedup)},
                           {"predicted_speedup", or_null(result.predicted_speedup)},
                           {"alpha", or_null(result.alpha)},
                           {"theorem_speedup", or_null(result.theorem_speedup)},
                           {"draft_ms", or_null(result.draft_ms)},
                           {"verify_ms", or_null(result.verify_ms)},
                           {"accept_ms", or_null(result.accept_ms)},
                           {"round_ms", or_null(result.round_ms)},
                           {"weights_gb_per_second", or_null(result.weights_gb_per_second)},
                           {"drafter", drafter_name(result.way.drafter)},
                           {"overlap", or_null(result.overlap)},
                           {"drafter_rounds", drafter_rounds_json(result.drafter_rounds)},
                           {"choice", or_null(result.choice)},
                           {"cpu_us_per_round", or_null(result.cpu_us_per_round)},
                           {"first_token_ms", or_null(result.first_token_ms)},
                           {"round_over_passes_gpu", or_null(result.round_over_passes_gpu)},
                           {"round_over_passes_wall", or_null(result.round_over_passes_wall)}});
    }
    Json json;
    json["schema"] = kSchema;
    json["device"] = device_json(report.engine);
    json["results"] = results;
    json["model"] = models_json(report.options.models);
    json["prompt_n"] = report.prompt_n;
    json["predicted_n"] = report.options.n_predict;
    json["temperature"] = report.options.sampling.temperature;
    json["seed"] = report.options.seed;
    json["acceptance"] = acceptance_name(report.options.sampling.acceptance);
    json["lenience"] = report.options.sampling.lenience;
    json["lossless"] = report.options.sampling.is_lossless() && !report.options.simulated_alpha;
    json["simulated_alpha"] = or_null(report.options.simulated_alpha); // not null: the texts mean nothing
    add_json(report.speed, json);
    print(json);
}

} // namespace auspex::cli
