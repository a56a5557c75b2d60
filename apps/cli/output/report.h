// What a command found out, as plain data, and the ways to show it: JSON on stdout, a summary on stderr.
#pragma once

#include "cli/bench/measurement.h"
#include "cli/output/speculation_report.h"
#include "cli/output/speed_report.h"
#include "cli/output/story_printer.h"

#include <auspex/auspex_tools.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace auspex::cli {

// A story told with drafts, and the same without.
struct Demonstration {
    std::optional<double> plain_per_second{}; // tokens, of generation alone
    std::optional<double> speedup{};          // of generation with drafts over that
    std::optional<size_t> first_difference{}; // index of a token; absent: the texts are equal
};

// Counts run over all completions. A time that is not available is absent.
struct RunReport {
    const auspex_engine_info& engine;
    const RunOptions& options;
    uint64_t seed = 0;
    std::vector<uint32_t> prompt_tokens{};
    std::vector<Completion> completions{};
    std::optional<double> prompt_ms{};      // wall time
    std::optional<double> predicted_ms{};   // wall time, completions side by side
    std::optional<double> first_token_ms{}; // wall time, prompt included
    SpeculationReport speculation{};
    std::optional<double> draft_ms{}, verify_ms{}, accept_ms{}; // GPU time of all rounds
    std::optional<Demonstration> demonstration{};
};

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

struct InfoReport {
    std::vector<auspex_device_info> devices;
    std::vector<std::pair<std::string, auspex_model_info>> models; // (path, description)
    std::optional<auspex_memory_plan> plan;                        // of one sequence of these models
    std::optional<auspex_tuning_report> tuning;                    // for these models
};

struct TuneReport {
    auspex_tuning_report tuning{};
    std::vector<TuningCandidate> candidates{}; // knob by knob
};

struct TokenizeReport {
    std::vector<uint32_t> ids;
    std::vector<std::string> pieces; // bytes, one for each id
};

struct ScoreReport {
    std::vector<uint32_t> tokens;
    std::vector<double> log_probs;                 // natural logarithms; one fewer than tokens
    std::map<size_t, std::vector<float>> logits{}; // by position; empty: not asked for
    bool has_logits = false;
};

// Mean of -log_probs, per token; absent for a single token.
std::optional<double> mean_nll(const std::vector<double>& log_probs);

std::optional<double> per_second(uint64_t count, std::optional<double> milliseconds);
std::optional<double> ratio(uint64_t count, uint64_t of); // absent when `of` is 0
const char* stop_reason_name(auspex_stop_reason reason);  // as in JSON

// Each prints one object and a line end to stdout. The keys are stable; new ones are added at the end of their object.
void print_json(const RunReport& report);
void print_json(const BenchReport& report);
void print_json(const InfoReport& report);
void print_json(const TokenizeReport& report);
void print_json(const TuneReport& report);
void print_text_json(const std::string& text); // {"text": …}
void print_json(const ScoreReport& report);

// For people, at most 80 columns.
void print_summary(const RunReport& report);  // stderr
void print_table(const BenchReport& report);  // stdout
void print_rows(const BenchReport& report);   // stdout, as options.format says
void print_listing(const InfoReport& report); // stdout
void print_listing(const TokenizeReport& report);
void print_listing(const TuneReport& report);
void print_tuning(const auspex_tuning_report& report); // a part of a listing
void print_listing(const ScoreReport& report);

// For programs or for people, whichever was asked for.
template <typename Report> void print_report(const Report& report, bool as_json) {
    if (as_json) print_json(report);
    else print_listing(report);
}

} // namespace auspex::cli
