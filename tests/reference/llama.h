// A whole Llama in double, one token at a time, straight from the paper (Touvron et al. 2023; RoPE in halves).
// Also the exact distribution of what it would say, by enumeration, for tiny vocabularies.
#pragma once

#include "reference/transforms.h"

#include <optional>

namespace auspex::reference {

struct LlamaLayer {
    std::vector<float> attention_norm; // (hidden)
    std::vector<float> wq;             // (n_heads · head_dim, hidden)
    std::vector<float> wk, wv;         // (n_kv_heads · head_dim, hidden)
    std::vector<float> wo;             // (hidden, n_heads · head_dim)
    std::vector<float> ffn_norm;       // (hidden)
    std::vector<float> w_gate, w_up;   // (ffn, hidden)
    std::vector<float> w_down;         // (hidden, ffn)
};

// What the model remembers of the tokens it has read; copy it to branch.
struct LlamaCache {
    uint32_t length = 0;      // tokens
    std::vector<Vector> k, v; // per layer: (length, n_kv_heads · head_dim), k rotated
};

struct ReferenceLlama {
    uint32_t hidden = 0, n_heads = 0, n_kv_heads = 0, head_dim = 0, ffn = 0, vocab = 0;
    double rms_eps = 1e-5;
    double rope_theta = 10000.0;
    Vector rope_divisors;    // (head_dim / 2); empty: ones
    bool half_cache = false; // K and V pass through f16 on their way into the cache
    bool half_inputs = false; // what layers multiply with weights is rounded to f16's 11 bits, as prompts may have it

    std::vector<float> embedding; // (vocab, hidden)
    std::vector<LlamaLayer> layers;
    std::vector<float> final_norm; // (hidden)
    std::vector<float> lm_head;    // (vocab, hidden); empty: the embedding

    // Reads one more token; the logits (vocab) of the token after it.
    Vector step(LlamaCache& cache, uint32_t token) const;
    // Logits of every position: (tokens.size(), vocab).
    std::vector<Vector> forward(std::span<const uint32_t> tokens) const;
    // Largest of every position's logits: plain greedy continuation of `prompt` by n tokens.
    std::vector<uint32_t> greedy(std::span<const uint32_t> prompt, uint32_t n) const;
    // P(next n tokens) for all vocab^n sequences, first token slowest; temperature > 0. After `stop` only `stop`
    // follows. Every token's logits are transformed in the context of all tokens before it.
    Vector enumerate(std::span<const uint32_t> prompt, uint32_t n, double temperature,
                     std::optional<uint32_t> stop = std::nullopt, const Transforms& transforms = {}) const;
};

} // namespace auspex::reference
