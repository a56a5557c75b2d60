// Chi-square tests: p-values, how many samples they need, and counts against probabilities.
#pragma once

#include "reference/ops.h"

#include <string>

namespace auspex::reference {

// P(X > statistic) for X chi-square distributed.
double chi_square_p(double statistic, double degrees);

struct Fit {
    double p_value = 1.0; // 0 when something impossible happened
    double statistic = 0.0;
    uint32_t bins = 0; // after merging those that expect fewer than 25
    std::string note;  // the first impossible thing, if any
};
// Do these counts come from these probabilities (which sum to one)? Any hit where the probability is zero says no.
Fit fit(std::span<const uint64_t> counts, const Vector& probabilities);

// The same for every row of a matrix of counts: row t was drawn from probabilities[t], however often.
Fit fit_rows(std::span<const uint64_t> counts, const std::vector<Vector>& probabilities);

// Draws needed to see a shift of total variation `shift` over `bins` with significance alpha and power 0.99, in the
// weakest case: non-centrality 4 · n · shift².
uint64_t samples_needed(uint32_t bins, double shift, double alpha);

} // namespace auspex::reference
