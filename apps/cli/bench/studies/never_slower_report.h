// Whether auto was ever slower: what was measured, and the verdict. Shown as a table or as JSON.
#pragma once

#include "cli/bench/options.h"

namespace auspex::cli {

inline constexpr double kLeastOverPlain = 0.97; // of each row
inline constexpr double kLeastOverBest = 0.95;  // of the mean
inline constexpr uint32_t kLeastAlternations = 7;

struct NeverSlowerRow {
    std::string pair, kind;
    double temperature = 0.0;
    double plain = 0.0, automatic = 0.0, best = 0.0; // tokens per second, medians
    std::string best_name{};                         // of the fixed ways, plain among them
    double over_plain = 0.0, over_best = 0.0;        // of auto; medians of the ratios of each alternation
    std::string choice{};                            // that auto told last
};

struct NeverSlowerReport {
    const BenchOptions& options;
    auspex_engine_info engine{};
    std::vector<NeverSlowerRow> rows{};

    double least_over_plain() const;
    double mean_over_plain() const;
    double least_over_best() const;
    double mean_over_best() const;
    bool holds() const;
};

void print_json(const NeverSlowerReport& report);
void print_table(const NeverSlowerReport& report); // stdout, 80 columns

} // namespace auspex::cli
