// Pearson's test: do counts come from known probabilities? In a header, so that tests can hold it against another one.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace auspex::cli {

// P(X > statistic) for X chi-square distributed: the upper regularised incomplete gamma function Q(degrees / 2,
// statistic / 2), by its series below its bulk and by Lentz's continued fraction above (Abramowitz and
// Stegun 6.5.29, 6.5.31).
inline double chi_square_p(double statistic, double degrees) {
    const double a = degrees / 2.0, x = statistic / 2.0;
    if (x <= 0.0) return 1.0;
    const double front = std::exp(a * std::log(x) - x - std::lgamma(a));
    if (x < a + 1.0) {
        double term = 1.0 / a, sum = term;
        for (double n = 1.0; term > 1e-17 * sum; ++n) {
            term *= x / (a + n);
            sum += term;
        }
        return std::max(0.0, 1.0 - front * sum);
    }
    constexpr double kTiny = 1e-300;
    double b = x + 1.0 - a, c = 1.0 / kTiny, d = 1.0 / b, fraction = d;
    for (int i = 1; i < 100000; ++i) {
        const double numerator = -i * (i - a);
        b += 2.0;
        d = numerator * d + b;
        if (std::fabs(d) < kTiny) d = kTiny;
        c = b + numerator / c;
        if (std::fabs(c) < kTiny) c = kTiny;
        d = 1.0 / d;
        fraction *= c * d;
        if (std::fabs(c * d - 1.0) < 1e-15) break;
    }
    return front * fraction;
}

struct ChiSquare {
    double statistic = 0.0, p_value = 1.0;
    uint32_t bins = 0; // after pooling
};

// counts and probabilities, which sum to one, have the same length. Bins that expect fewer than 5 are pooled, the
// smallest first. A hit where the probability is 0 makes the p-value 0.
inline ChiSquare chi_square(const std::vector<uint64_t>& counts, const std::vector<double>& probabilities) {
    constexpr double kLeastExpected = 5.0;
    double n = 0.0;
    for (const uint64_t count : counts)
        n += static_cast<double>(count);
    ChiSquare result;
    std::vector<std::pair<double, double>> bins; // expected, found
    bool is_possible = true;
    for (size_t i = 0; i < counts.size(); ++i) {
        const double expected = n * probabilities[i];
        if (expected > 0.0)
            bins.emplace_back(expected, static_cast<double>(counts[i]));
        else
            is_possible = is_possible && counts[i] == 0;
    }
    std::sort(bins.begin(), bins.end());
    std::vector<std::pair<double, double>> pooled;
    for (const auto& [expected, found] : bins) {
        if (pooled.empty() || pooled.back().first >= kLeastExpected) pooled.emplace_back(0.0, 0.0);
        pooled.back().first += expected;
        pooled.back().second += found;
    }
    for (const auto& [expected, found] : pooled)
        result.statistic += (found - expected) * (found - expected) / expected;
    result.bins = static_cast<uint32_t>(pooled.size());
    if (pooled.size() > 1) result.p_value = chi_square_p(result.statistic, static_cast<double>(pooled.size() - 1));
    if (!is_possible) result.p_value = 0.0;
    return result;
}

} // namespace auspex::cli
