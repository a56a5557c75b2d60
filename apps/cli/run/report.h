// What auspex run found out, as plain data, and the ways to show it.
#pragma once

#include "cli/common/output/speculation_report.h"
#include "cli/common/output/story_printer.h"
#include "cli/run/options.h"

namespace auspex::cli {

// A story told with drafts, and the same without, in turn. Speeds are medians, in tokens per second of generation alone.
struct Demonstration {
    uint32_t tellings = 0; // of each
    std::optional<double> drafted_per_second{};
    std::optional<double> plain_per_second{};
    std::optional<double> speedup{};          // with drafts over plain
    std::optional<size_t> first_difference{}; // index of a token; absent: all texts are equal
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

// One object and a line end on stdout. The keys are stable; new ones are added at the end of their object.
void print_json(const RunReport& report);
void print_summary(const RunReport& report); // for people, on stderr, at most 80 columns (names and paths may be longer)

} // namespace auspex::cli
