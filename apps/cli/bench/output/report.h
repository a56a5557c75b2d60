// What auspex bench found out, as plain data, and the ways to show it on stdout.
#pragma once

#include "cli/bench/options.h"
#include "cli/bench/output/speed_report.h"
#include "cli/common/engine/trial.h"
#include "cli/common/output/speculation_report.h"

#include <array>

namespace auspex::cli {

// One way of decoding, measured. What does not apply or is not available is absent.
struct BenchResult {
    Way way{};
    std::vector<double> samples{};  // tokens per second, one per repetition
    double tokens_per_second = 0.0; // median
    double stddev = 0.0;
    std::optional<double> acceptance_rate{}; // accepted / drafted
    double tokens_per_round = 0.0;
    std::optional<double> alpha{};  // acceptance probability of one draft, maximum likelihood
    std::optional<double> c{}, v{}; // draft pass and verify pass / plain target pass
    std::optional<double> speedup{}, predicted_speedup{};
    std::optional<double> theorem_speedup{};                    // the prediction from alpha, c and v alone
    std::optional<double> draft_ms{}, verify_ms{}, accept_ms{}; // GPU time per round
    std::optional<double> round_ms{};                           // wall time per round
    std::optional<double> weights_gb_per_second{};              // of plain decoding, 1e9 bytes
    std::optional<double> overlap{};                            // mean Σ min(target, draft) over tested drafts
    std::array<uint64_t, kRoundDrafters> drafter_rounds{};
    std::string choice{}; // of the last repetition
    std::optional<double> cpu_us_per_round{}; // median; of the calling thread, rounds being recorded
    std::optional<double> first_token_ms{};   // median; wall time from creation
    // A round / its passes timed by themselves (K draft passes of a row and a target pass of K + 1), as GPU time and as wall
    // time over the same GPU time of the passes; of the drafter model.
    std::optional<double> round_over_passes_gpu{}, round_over_passes_wall{};
};

struct BenchReport {
    const auspex_engine_info& engine;
    const BenchOptions& options;
    size_t prompt_n = 0;
    std::vector<BenchResult> results{}; // plain first; none: nothing was generated
    SpeedReport speed{};
};

// One object and a line end on stdout. The keys are stable; new ones are added at the end of their object.
void print_json(const BenchReport& report);
void print_table(const BenchReport& report); // for people, at most 80 columns (names may be longer)
void print_rows(const BenchReport& report);  // as options.format says

} // namespace auspex::cli
