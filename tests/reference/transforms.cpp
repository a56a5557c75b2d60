// Transforms by the book.
#include "reference/transforms.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace auspex::reference {

Vector edit_logits(Vector logits, const Transforms& t, std::span<const uint32_t> context) {
    for (uint32_t token = 0; token < logits.size(); ++token) {
        const auto count = static_cast<double>(std::count(context.begin(), context.end(), token));
        if (count == 0) continue;
        double& z = logits[token];
        z = z > 0 ? z / t.repeat_penalty : z * t.repeat_penalty;
        z -= t.presence_penalty + count * t.frequency_penalty;
    }
    for (const auto& [token, bias] : t.biases)
        logits[token] += bias;
    return logits;
}

Ranking rank(const Vector& logits, uint32_t top_k) {
    Ranking ranking;
    for (uint32_t token = 0; token < logits.size(); ++token)
        if (logits[token] > -std::numeric_limits<double>::infinity()) ranking.tokens.push_back(token); // nor NaN
    std::stable_sort(ranking.tokens.begin(), ranking.tokens.end(), [&](uint32_t a, uint32_t b) { return logits[a] > logits[b]; });
    if (top_k > 0 && top_k < ranking.tokens.size()) ranking.tokens.resize(top_k);
    Vector masses;
    double total = 0, sum = 0;
    for (uint32_t token : ranking.tokens) {
        const double z = logits[token], largest = logits[ranking.tokens[0]];
        masses.push_back(z == largest ? 1 : std::exp(z - largest)); // infinities share equally
        total += masses.back();
    }
    for (double mass : masses) {
        ranking.before.push_back(sum / total);
        sum += mass;
    }
    return ranking;
}

Vector probabilities(const Vector& logits, const Transforms& t, std::span<const uint32_t> context, double temperature) {
    const Vector edited = edit_logits(logits, t, context);
    const Ranking ranking = rank(edited, t.top_k);
    Vector left(edited.size(), -std::numeric_limits<double>::infinity());
    for (size_t i = 0; i < ranking.tokens.size(); ++i) {
        const double z = edited[ranking.tokens[i]], largest = edited[ranking.tokens[0]];
        const bool in_top_p = i == 0 || t.top_p >= 1 || ranking.before[i] < t.top_p;
        if (in_top_p && std::exp(z - largest) >= t.min_p) left[ranking.tokens[i]] = z;
    }
    return softmax(left, temperature);
}

} // namespace auspex::reference
