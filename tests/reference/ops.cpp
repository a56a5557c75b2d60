// Naive on purpose: what these functions compute must be visible at a glance.
#include "reference/ops.h"

#include <algorithm>
#include <cmath>

namespace auspex::reference {

Vector embed(std::span<const float> table, uint32_t width, uint32_t token) {
    Vector x(width, 0.0);
    if (uint64_t{token} * width >= table.size()) return x;
    for (uint32_t i = 0; i < width; ++i)
        x[i] = table[size_t{token} * width + i];
    return x;
}

Vector rmsnorm(const Vector& x, std::span<const float> weight, double eps) {
    double squares = 0.0;
    for (double v : x)
        squares += v * v;
    const double scale = 1.0 / std::sqrt(squares / double(x.size()) + eps);
    Vector y(x.size());
    for (size_t i = 0; i < x.size(); ++i)
        y[i] = x[i] * scale * weight[i];
    return y;
}

Vector matvec(std::span<const float> weight, const Vector& x) {
    Vector y(weight.size() / x.size(), 0.0);
    for (size_t o = 0; o < y.size(); ++o)
        for (size_t k = 0; k < x.size(); ++k)
            y[o] += double(weight[o * x.size() + k]) * x[k];
    return y;
}

void rope(std::span<double> head, uint32_t position, double theta, std::span<const double> divisors) {
    const size_t half = head.size() / 2;
    for (size_t i = 0; i < half; ++i) {
        const double divisor = divisors.empty() ? 1.0 : divisors[i];
        const double angle = position * std::pow(theta, -2.0 * double(i) / double(head.size())) / divisor;
        const double a = head[i], b = head[i + half];
        head[i] = a * std::cos(angle) - b * std::sin(angle);
        head[i + half] = b * std::cos(angle) + a * std::sin(angle);
    }
}

Vector llama3_divisors(uint32_t head_dim, double theta, const Llama3Rope& scaling) {
    const double longest_kept = scaling.original_max_position / scaling.high_freq_factor;
    const double shortest_scaled = scaling.original_max_position / scaling.low_freq_factor;
    Vector divisors;
    for (uint32_t i = 0; i < head_dim / 2; ++i) {
        const double wavelength = 2.0 * std::acos(-1.0) * std::pow(theta, 2.0 * i / head_dim);
        const double smooth = (scaling.original_max_position / wavelength - scaling.low_freq_factor) /
                              (scaling.high_freq_factor - scaling.low_freq_factor);
        divisors.push_back(wavelength < longest_kept      ? 1.0
                           : wavelength > shortest_scaled ? scaling.factor
                                                          : 1.0 / ((1.0 - smooth) / scaling.factor + smooth));
    }
    return divisors;
}

Vector attention(std::span<const double> query, std::span<const double> keys, std::span<const double> values,
                 double scale) {
    const size_t width = query.size(), n = keys.size() / width;
    Vector scores(n, 0.0);
    for (size_t j = 0; j < n; ++j)
        for (size_t i = 0; i < width; ++i)
            scores[j] += scale * query[i] * keys[j * width + i];
    const Vector weights = softmax(scores);
    Vector y(width, 0.0);
    for (size_t j = 0; j < n; ++j)
        for (size_t i = 0; i < width; ++i)
            y[i] += weights[j] * values[j * width + i];
    return y;
}

Vector swiglu(const Vector& gate, const Vector& up) {
    Vector y(gate.size());
    for (size_t i = 0; i < y.size(); ++i)
        y[i] = gate[i] / (1.0 + std::exp(-gate[i])) * up[i];
    return y;
}

Vector softmax(std::span<const double> logits, double temperature) {
    const double largest = *std::max_element(logits.begin(), logits.end());
    Vector p(logits.size());
    double sum = 0.0;
    for (size_t i = 0; i < p.size(); ++i)
        sum += p[i] = std::exp((logits[i] - largest) / temperature);
    for (double& v : p)
        v /= sum;
    return p;
}

Vector log_softmax(std::span<const double> logits) {
    Vector p(logits.size(), NAN);
    double most = -INFINITY, sum = 0;
    for (double z : logits)
        if (z > most) most = z;
    if (!std::isfinite(most)) return p;
    for (double z : logits) sum += std::isnan(z) ? 0 : std::exp(z - most);
    for (size_t i = 0; i < logits.size(); ++i) p[i] = logits[i] - most - std::log(sum);
    return p;
}

std::vector<uint32_t> largest(std::span<const double> values, size_t n) {
    std::vector<uint32_t> order(values.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return values[a] > values[b] || (std::isnan(values[b]) && !std::isnan(values[a])); });
    order.resize(std::min(n, order.size()));
    return order;
}

uint32_t argmax(std::span<const double> values) {
    return static_cast<uint32_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

} // namespace auspex::reference
