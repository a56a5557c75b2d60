// What speculation does for sequences side by side: what was measured, as a table or as JSON.
#pragma once

#include "cli/bench/options.h"

namespace auspex::cli {

struct ConcurrencyRow {
    uint32_t n_sequences = 0;             // at once, at most
    double plain = 0.0, automatic = 0.0;  // tokens per second of all together, medians
    double over_plain = 0.0;              // of auto; the median of the ratios of each alternation
    double first_token_ms = 0.0;          // of auto: the median sequence's, from its creation on
    double longest_gap_ms = 0.0;          // of auto: 99th percentile of the longest time that a sequence brought nothing
    double cpu_us_per_round = 0.0;        // plain: of the thread that steps and reads, drivers that run in it included
};

struct ConcurrencyReport {
    const BenchOptions& options;
    auspex_engine_info engine{};
    std::vector<ConcurrencyRow> rows{};
};

void print_json(const ConcurrencyReport& report);
void print_table(const ConcurrencyReport& report); // stdout, 80 columns

} // namespace auspex::cli
