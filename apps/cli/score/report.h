// What auspex score found out, as plain data, and the ways to show it on stdout.
#pragma once

#include "cli/score/options.h"

#include <map>

namespace auspex::cli {

struct ScoreReport {
    std::vector<uint32_t> tokens;
    std::vector<double> log_probs;                 // natural logarithms; one fewer than tokens
    std::map<size_t, std::vector<float>> logits{}; // by position; empty: not asked for
    bool has_logits = false;
};

void print_json(const ScoreReport& report);
void print_listing(const ScoreReport& report);

} // namespace auspex::cli
