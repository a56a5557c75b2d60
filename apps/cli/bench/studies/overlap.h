// How much the distributions of a drafter and the target overlap: the α of Leviathan et al. 2023, theorem 3.5, as the
// mean of Σ min(p, q) over the positions of texts that the target wrote.
#pragma once

#include "cli/common/engine/client.h"

#include <map>
#include <span>

namespace auspex::cli {

// Unigrams and bigrams of texts. Unigrams by add-one; bigrams by Witten and Bell 1991: with c tokens seen after
// `last`, t of them different, c / (c + t) of the probability goes by them and the rest by the unigrams.
class NgramCounts {
  public:
    explicit NgramCounts(uint32_t vocab_size);
    void add(std::span<const uint32_t> tokens);
    uint64_t token_count() const { return n_; }
    std::vector<float> unigram() const;             // (vocab_size)
    std::vector<float> bigram(uint32_t last) const; // (vocab_size)

  private:
    std::vector<uint32_t> counts_; // (vocab_size)
    std::map<uint32_t, std::map<uint32_t, uint32_t>> followers_; // by token: how often each token followed it
    uint64_t n_ = 0;
};

// softmax(logits / temperature); the first largest alone at 0.
std::vector<float> distribution(std::span<const float> logits, double temperature);
// Temperature does to a drafter's distribution what it does to its logits, as in the paper.
std::vector<float> sharpened(std::vector<float> probabilities, double temperature);
double overlap(std::span<const float> p, std::span<const float> q); // Σ min(p, q)

// Returns the logits after tokens[first … n - 2], each (n_logits), in one vector: what generated tokens[first + 1 … n - 1].
std::vector<std::vector<float>> logits_after(Client& client, const std::vector<uint32_t>& tokens, size_t first);

} // namespace auspex::cli
