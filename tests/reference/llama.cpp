// The forward pass as the paper has it, and a walk over the tree of continuations.
#include "reference/llama.h"

#include "reference/half.h"

#include <cmath>

namespace auspex::reference {
namespace {

void add(Vector& x, const Vector& y) {
    for (size_t i = 0; i < x.size(); ++i)
        x[i] += y[i];
}

// weight · x, of a layer.
Vector product(const ReferenceLlama& model, const std::vector<float>& weight, Vector x) {
    if (model.half_inputs)
        for (double& value : x) value = round_to_11_bits(value);
    return matvec(weight, x);
}

// The keys or values of one KV head: (length, head_dim).
Vector one_head(const Vector& rows, uint32_t n_kv_heads, uint32_t head_dim, uint32_t head) {
    Vector out;
    const size_t stride = size_t{n_kv_heads} * head_dim;
    for (size_t at = head * size_t{head_dim}; at < rows.size(); at += stride)
        out.insert(out.end(), rows.begin() + static_cast<ptrdiff_t>(at),
                   rows.begin() + static_cast<ptrdiff_t>(at + head_dim));
    return out;
}

Vector self_attention(const ReferenceLlama& model, const LlamaLayer& layer, LlamaCache& cache, size_t index,
                      const Vector& x) {
    Vector q = product(model, layer.wq, x), k = product(model, layer.wk, x), v = product(model, layer.wv, x);
    const size_t width = model.head_dim;
    for (size_t h = 0; h < model.n_heads; ++h)
        rope({&q[h * width], width}, cache.length, model.rope_theta, model.rope_divisors);
    for (size_t h = 0; h < model.n_kv_heads; ++h)
        rope({&k[h * width], width}, cache.length, model.rope_theta, model.rope_divisors);
    for (double& value : k)
        value = model.half_cache ? round_to_half(value) : value;
    for (double& value : v)
        value = model.half_cache ? round_to_half(value) : value;
    cache.k[index].insert(cache.k[index].end(), k.begin(), k.end());
    cache.v[index].insert(cache.v[index].end(), v.begin(), v.end());

    Vector joined;
    for (uint32_t h = 0; h < model.n_heads; ++h) {
        const uint32_t kv_head = h / (model.n_heads / model.n_kv_heads);
        const Vector keys = one_head(cache.k[index], model.n_kv_heads, model.head_dim, kv_head);
        const Vector values = one_head(cache.v[index], model.n_kv_heads, model.head_dim, kv_head);
        const Vector y = attention({&q[h * width], width}, keys, values, 1.0 / std::sqrt(double(width)));
        joined.insert(joined.end(), y.begin(), y.end());
    }
    return product(model, layer.wo, joined);
}

void extend(const ReferenceLlama& model, const LlamaCache& cache, const Vector& logits, double probability, uint32_t n,
            double temperature, std::optional<uint32_t> stop, const Transforms& transforms, std::vector<uint32_t>& context, Vector& out) {
    if (n == 0) {
        out.push_back(probability);
        return;
    }
    const Vector p = probabilities(logits, transforms, context, temperature);
    for (uint32_t token = 0; token < model.vocab; ++token) {
        if (stop && token == *stop) { // its subtree has one leaf with weight: stop, stop, …
            size_t leaves = 1, at = 0;
            for (uint32_t i = 1; i < n; ++i) {
                leaves *= model.vocab;
                at = at * model.vocab + token;
            }
            out.resize(out.size() + leaves, 0.0);
            out[out.size() - leaves + at] = probability * p[token];
            continue;
        }
        LlamaCache branch = cache;
        const Vector next = n > 1 ? model.step(branch, token) : Vector{};
        context.push_back(token);
        extend(model, branch, next, probability * p[token], n - 1, temperature, stop, transforms, context, out);
        context.pop_back();
    }
}

} // namespace

Vector ReferenceLlama::step(LlamaCache& cache, uint32_t token) const {
    cache.k.resize(layers.size());
    cache.v.resize(layers.size());
    Vector x = embed(embedding, hidden, token);
    for (size_t l = 0; l < layers.size(); ++l) {
        const LlamaLayer& layer = layers[l];
        add(x, self_attention(*this, layer, cache, l, rmsnorm(x, layer.attention_norm, rms_eps)));
        const Vector normed = rmsnorm(x, layer.ffn_norm, rms_eps);
        add(x, product(*this, layer.w_down, swiglu(product(*this, layer.w_gate, normed), product(*this, layer.w_up, normed))));
    }
    ++cache.length;
    return matvec(lm_head.empty() ? embedding : lm_head, rmsnorm(x, final_norm, rms_eps));
}

std::vector<Vector> ReferenceLlama::forward(std::span<const uint32_t> tokens) const {
    LlamaCache cache;
    std::vector<Vector> logits;
    for (uint32_t token : tokens)
        logits.push_back(step(cache, token));
    return logits;
}

std::vector<uint32_t> ReferenceLlama::greedy(std::span<const uint32_t> prompt, uint32_t n) const {
    LlamaCache cache;
    Vector logits;
    for (uint32_t token : prompt)
        logits = step(cache, token);
    std::vector<uint32_t> out;
    while (out.size() < n) {
        out.push_back(argmax(logits));
        if (out.size() < n) logits = step(cache, out.back());
    }
    return out;
}

Vector ReferenceLlama::enumerate(std::span<const uint32_t> prompt, uint32_t n, double temperature,
                                 std::optional<uint32_t> stop, const Transforms& transforms) const {
    LlamaCache cache;
    Vector logits;
    for (uint32_t token : prompt)
        logits = step(cache, token);
    Vector out;
    std::vector<uint32_t> context(prompt.begin(), prompt.end());
    extend(*this, cache, logits, 1.0, n, temperature, stop, transforms, context, out);
    return out;
}

} // namespace auspex::reference
