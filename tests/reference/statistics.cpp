// The incomplete gamma function by series and continued fraction (Abramowitz and Stegun 6.5.29, 6.5.31).
#include "reference/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace auspex::reference {
namespace {

// P(X > x) of a Gamma(a) variable.
double upper_gamma(double a, double x) {
    if (x <= 0.0) return 1.0;
    const double front = std::exp(-x + a * std::log(x) - std::lgamma(a));
    if (x < a + 1.0) {
        double term = 1.0 / a, sum = term;
        for (double n = 1.0; term > sum * 1e-17; ++n)
            sum += term *= x / (a + n);
        return 1.0 - front * sum;
    }
    // Lentz's method for the continued fraction.
    double b = x + 1.0 - a, c = 1e300, d = 1.0 / b, h = d;
    for (int i = 1; i < 10000; ++i) {
        const double an = -i * (i - a);
        b += 2.0;
        d = 1.0 / (an * d + b);
        c = b + an / c;
        h *= d * c;
        if (std::fabs(d * c - 1.0) < 1e-15) break;
    }
    return front * h;
}

// P(X ≤ x) for non-central chi-square: a Poisson mixture of central ones.
double noncentral_below(double x, double degrees, double noncentrality) {
    const double half = noncentrality / 2.0;
    double sum = 0.0;
    for (int j = 0; j < int(half + 12.0 * std::sqrt(half) + 40.0); ++j) {
        const double weight = std::exp(-half + j * std::log(half) - std::lgamma(j + 1.0));
        sum += weight * (1.0 - chi_square_p(x, degrees + 2.0 * j));
    }
    return sum;
}

// Where a falling function of x crosses `value`.
template <typename F> double solve(F f, double value, double high) {
    double low = 0.0;
    for (int i = 0; i < 100; ++i)
        (f((low + high) / 2) > value ? low : high) = (low + high) / 2;
    return low;
}

} // namespace

double chi_square_p(double statistic, double degrees) {
    return upper_gamma(degrees / 2.0, statistic / 2.0);
}

Fit fit(std::span<const uint64_t> counts, const Vector& probabilities) {
    constexpr double kSmallest = 25.0;
    Fit out;
    const double n = double(std::accumulate(counts.begin(), counts.end(), uint64_t{0}));
    std::vector<std::pair<double, double>> bins; // expected, found
    for (size_t i = 0; i < counts.size(); ++i) {
        if (probabilities[i] > 0.0) {
            bins.push_back({n * probabilities[i], double(counts[i])});
        } else if (counts[i] > 0) {
            if (out.note.empty()) out.note = "bin " + std::to_string(i) + " is impossible and has hits";
            out.p_value = 0.0;
        }
    }
    std::sort(bins.begin(), bins.end());
    std::vector<std::pair<double, double>> merged; // small ones together until they are large enough
    for (const auto& bin : bins) {
        if (!merged.empty() && merged.back().first < kSmallest) {
            merged.back().first += bin.first;
            merged.back().second += bin.second;
        } else {
            merged.push_back(bin);
        }
    }
    for (const auto& [expected, found] : merged)
        out.statistic += (found - expected) * (found - expected) / expected;
    out.bins = static_cast<uint32_t>(merged.size());
    if (out.bins > 1) out.p_value = std::min(out.p_value, chi_square_p(out.statistic, out.bins - 1.0));
    return out;
}

Fit fit_rows(std::span<const uint64_t> counts, const std::vector<Vector>& probabilities) {
    Fit out;
    double degrees = 0.0;
    bool possible = true;
    for (size_t t = 0; t < probabilities.size(); ++t) {
        const size_t width = probabilities[t].size();
        const Fit row = fit(counts.subspan(t * width, width), probabilities[t]);
        possible = possible && row.note.empty();
        if (out.note.empty() && !row.note.empty()) out.note = "row " + std::to_string(t) + ": " + row.note;
        if (row.bins < 2) continue;
        out.statistic += row.statistic;
        out.bins += row.bins;
        degrees += row.bins - 1.0;
    }
    if (degrees > 0.0) out.p_value = chi_square_p(out.statistic, degrees);
    if (!possible) out.p_value = 0.0;
    return out;
}

uint64_t samples_needed(uint32_t bins, double shift, double alpha) {
    const double degrees = bins - 1.0;
    const double critical = solve([&](double x) { return chi_square_p(x, degrees); }, alpha, 100.0 + 20.0 * degrees);
    const double lambda = solve([&](double l) { return noncentral_below(critical, degrees, l); }, 0.01, 2000.0);
    return static_cast<uint64_t>(std::ceil(lambda / (4.0 * shift * shift)));
}

} // namespace auspex::reference
