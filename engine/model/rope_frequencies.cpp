// Angular frequencies of rotary embeddings (Su et al. 2021) and their scalings for longer contexts. Tables of cos and
// sin are made by the forward pass.
#include "model/llama_config.h"

#include <cmath>
#include <numbers>

namespace auspex {
namespace {

// Llama 3.1's rule: wavelengths the model was trained on stay, those beyond its context are stretched by the factor,
// and a ramp joins the two. Source: transformers' _compute_llama3_parameters.
double llama3_frequency(const RopeScaling& scaling, double plain) {
    const double low = scaling.low_freq_factor, high = scaling.high_freq_factor, factor = scaling.factor;
    const double wavelength = 2.0 * std::numbers::pi / plain;        // positions
    const double turns = scaling.original_max_position / wavelength; // within the context of the first training
    if (turns > high) return plain;
    if (turns < low) return plain / factor;
    const double kept = (turns - low) / (high - low);
    return (1.0 - kept) * plain / factor + kept * plain;
}

} // namespace

std::vector<double> rope_frequencies(const LlamaConfig& config) {
    std::vector<double> frequencies;
    for (uint32_t i = 0; i < config.head_dim / 2; ++i) {
        const double plain = std::pow(static_cast<double>(config.rope_theta), -2.0 * i / config.head_dim);
        double scaled = plain;
        if (config.rope_scaling.kind == RopeScaling::Kind::linear)
            scaled = plain / static_cast<double>(config.rope_scaling.factor);
        if (config.rope_scaling.kind == RopeScaling::Kind::llama3)
            scaled = llama3_frequency(config.rope_scaling, plain);
        if (i < config.rope_divisors.size()) scaled /= static_cast<double>(config.rope_divisors[i]);
        frequencies.push_back(scaled);
    }
    return frequencies;
}

} // namespace auspex
