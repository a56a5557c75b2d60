// Counts, distributions and their overlap.
#include "cli/bench/studies/overlap.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace auspex::cli {

NgramCounts::NgramCounts(uint32_t vocab_size) : counts_(vocab_size) {}

void NgramCounts::add(std::span<const uint32_t> tokens) {
    for (size_t i = 0; i < tokens.size(); ++i) {
        ++counts_[tokens[i]];
        if (i > 0) ++followers_[tokens[i - 1]][tokens[i]];
    }
    n_ += tokens.size();
}

std::vector<float> NgramCounts::unigram() const {
    std::vector<float> probabilities(counts_.size());
    const double sum = static_cast<double>(n_ + counts_.size());
    for (size_t i = 0; i < counts_.size(); ++i)
        probabilities[i] = static_cast<float>((counts_[i] + 1.0) / sum);
    return probabilities;
}

std::vector<float> NgramCounts::bigram(uint32_t last) const {
    std::vector<float> probabilities = unigram();
    const auto found = followers_.find(last);
    if (found == followers_.end()) return probabilities;
    double seen = 0.0;
    for (const auto& [token, count] : found->second)
        seen += count;
    const auto n_different = static_cast<double>(found->second.size());
    for (float& probability : probabilities)
        probability *= static_cast<float>(n_different / (seen + n_different));
    for (const auto& [token, count] : found->second)
        probabilities[token] += static_cast<float>(count / (seen + n_different));
    return probabilities;
}

std::vector<float> distribution(std::span<const float> logits, double temperature) {
    std::vector<float> probabilities(logits.size(), 0.0f);
    const size_t best = static_cast<size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    if (temperature == 0.0) {
        probabilities[best] = 1.0f;
        return probabilities;
    }
    double sum = 0.0;
    for (size_t i = 0; i < logits.size(); ++i) {
        const double weight = std::exp((static_cast<double>(logits[i]) - logits[best]) / temperature);
        probabilities[i] = static_cast<float>(weight);
        sum += weight;
    }
    for (float& probability : probabilities)
        probability = static_cast<float>(probability / sum);
    return probabilities;
}

std::vector<float> sharpened(std::vector<float> probabilities, double temperature) {
    if (temperature == 1.0) return probabilities;
    for (float& probability : probabilities)
        probability = std::log(std::max(probability, 1e-30f));
    return distribution(probabilities, temperature);
}

double overlap(std::span<const float> p, std::span<const float> q) {
    double sum = 0.0;
    for (size_t i = 0; i < std::min(p.size(), q.size()); ++i)
        sum += std::min(p[i], q[i]);
    return sum;
}

std::vector<std::vector<float>> logits_after(Client& client, const std::vector<uint32_t>& tokens, size_t first) {
    std::vector<size_t> positions(tokens.size() - 1 - first);
    std::iota(positions.begin(), positions.end(), first);
    std::vector<std::vector<float>> rows;
    auspex_score_options options;
    auspex_score_options_init(&options, sizeof options);
    options.logit_positions = positions.data();
    options.logit_position_count = positions.size();
    options.logits = [](void* user_data, size_t, const float* logits, size_t n_logits) {
        static_cast<std::vector<std::vector<float>>*>(user_data)->emplace_back(logits, logits + n_logits);
    };
    options.user_data = &rows;
    client.score(tokens, nullptr, options);
    return rows;
}

} // namespace auspex::cli
