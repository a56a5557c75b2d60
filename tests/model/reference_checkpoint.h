// A checkpoint's weights as the double-precision reference model takes them.
#pragma once

#include "model/checkpoint.h"
#include "reference/half.h"
#include "reference/llama.h"

#include <cstring>
#include <gtest/gtest.h>

namespace auspex::test {

inline std::vector<float> read_floats(const Checkpoint& checkpoint, const std::string& name) {
    const TensorInfo* tensor = checkpoint.find(name);
    EXPECT_TRUE(tensor) << name;
    if (!tensor) return {};
    std::vector<std::byte> bytes(tensor->bytes);
    const Status status = checkpoint.read(*tensor, 0, bytes);
    EXPECT_TRUE(status.ok()) << status.message();
    std::vector<float> out(bytes.size() / dtype_bytes(tensor->dtype));
    for (size_t i = 0; i < out.size(); ++i) {
        if (tensor->dtype == DType::f32) {
            std::memcpy(&out[i], &bytes[4 * i], 4);
            continue;
        }
        uint16_t bits;
        std::memcpy(&bits, &bytes[2 * i], 2);
        out[i] = tensor->dtype == DType::f16 ? reference::half_to_float(bits) : reference::bfloat_to_float(bits);
    }
    return out;
}

inline reference::Vector reference_divisors(const LlamaConfig& c) {
    const RopeScaling& s = c.rope_scaling;
    const double factor = static_cast<double>(s.factor);
    if (s.kind == RopeScaling::Kind::linear) return reference::Vector(c.head_dim / 2, factor);
    if (s.kind == RopeScaling::Kind::llama3)
        return reference::llama3_divisors(c.head_dim, static_cast<double>(c.rope_theta),
                                          {factor, static_cast<double>(s.low_freq_factor),
                                           static_cast<double>(s.high_freq_factor), double(s.original_max_position)});
    return {c.rope_divisors.begin(), c.rope_divisors.end()};
}

inline reference::ReferenceLlama reference_model(const Checkpoint& checkpoint, bool half_cache) {
    const LlamaConfig& c = checkpoint.config();
    reference::ReferenceLlama model;
    model.hidden = c.hidden_size;
    model.n_heads = c.n_heads;
    model.n_kv_heads = c.n_kv_heads;
    model.head_dim = c.head_dim;
    model.ffn = c.ffn_size;
    model.vocab = c.vocab_size;
    model.rms_eps = static_cast<double>(c.rms_eps);
    model.rope_theta = static_cast<double>(c.rope_theta);
    model.rope_divisors = reference_divisors(c);
    model.half_cache = half_cache;
    model.embedding = read_floats(checkpoint, "model.embed_tokens.weight");
    for (uint32_t i = 0; i < c.n_layers; ++i) {
        auto weight = [&](const char* name) {
            return read_floats(checkpoint, "model.layers." + std::to_string(i) + "." + name + ".weight");
        };
        model.layers.push_back({weight("input_layernorm"), weight("self_attn.q_proj"), weight("self_attn.k_proj"),
                                weight("self_attn.v_proj"), weight("self_attn.o_proj"), weight("post_attention_layernorm"),
                                weight("mlp.gate_proj"), weight("mlp.up_proj"), weight("mlp.down_proj")});
    }
    model.final_norm = read_floats(checkpoint, "model.norm.weight");
    if (!c.tied_embedding) model.lm_head = read_floats(checkpoint, "lm_head.weight");
    return model;
}

inline reference::ReferenceLlama reference_model(const SyntheticModel& synthetic, bool half_cache) {
    auto made = make_synthetic_checkpoint(synthetic);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.ok() ? reference_model(*made.value(), half_cache) : reference::ReferenceLlama{};
}

} // namespace auspex::test
