// What sampling parameters do to logits before the temperature, from their definitions, in double and by sorting.
#pragma once

#include "reference/ops.h"

#include <utility>

namespace auspex::reference {

struct Transforms {
    double repeat_penalty = 1, presence_penalty = 0, frequency_penalty = 0;
    std::vector<std::pair<uint32_t, double>> biases; // token, what is added
    uint32_t top_k = 0;                              // 0: off
    double top_p = 1, min_p = 0;
};

// Penalties of the tokens in `context`, then biases.
Vector edit_logits(Vector logits, const Transforms& transforms, std::span<const uint32_t> context);

// The tokens that can be drawn, best first (lowest id among equals), as many as top_k leaves, and for each the share of
// their common probability that comes before it.
struct Ranking {
    std::vector<uint32_t> tokens;
    Vector before;
};
Ranking rank(const Vector& logits, uint32_t top_k);

// Probabilities (vocab) of one draw after all transforms; temperature > 0.
Vector probabilities(const Vector& logits, const Transforms& transforms, std::span<const uint32_t> context, double temperature);

} // namespace auspex::reference
