// The tensors of a Llama: what GGUF and Hugging Face call them, their shapes, and which of them GGUF stores in another order.
#pragma once

#include <cstdint>
#include <string>

namespace auspex {

enum class Dim { none, hidden, query, key_value, ffn, vocab, half_head };
enum class RowOrder { same, query_pairs, key_pairs };

// One tensor of a model or layer, in both spellings.
struct TensorRole {
    const char* gguf;
    const char* huggingface;
    Dim rows, cols; // cols none: a vector
    RowOrder order = RowOrder::same;
};
inline constexpr TensorRole kLayerRoles[] = {
    {"attn_norm.weight", "input_layernorm.weight", Dim::hidden, Dim::none},
    {"attn_q.weight", "self_attn.q_proj.weight", Dim::query, Dim::hidden, RowOrder::query_pairs},
    {"attn_k.weight", "self_attn.k_proj.weight", Dim::key_value, Dim::hidden, RowOrder::key_pairs},
    {"attn_v.weight", "self_attn.v_proj.weight", Dim::key_value, Dim::hidden},
    {"attn_output.weight", "self_attn.o_proj.weight", Dim::hidden, Dim::query},
    {"ffn_norm.weight", "post_attention_layernorm.weight", Dim::hidden, Dim::none},
    {"ffn_gate.weight", "mlp.gate_proj.weight", Dim::ffn, Dim::hidden},
    {"ffn_up.weight", "mlp.up_proj.weight", Dim::ffn, Dim::hidden},
    {"ffn_down.weight", "mlp.down_proj.weight", Dim::hidden, Dim::ffn},
};
inline constexpr TensorRole kEmbeddingRole = {"token_embd.weight", "model.embed_tokens.weight", Dim::vocab, Dim::hidden};
inline constexpr TensorRole kNormRole = {"output_norm.weight", "model.norm.weight", Dim::hidden, Dim::none};
inline constexpr TensorRole kHeadRole = {"output.weight", "lm_head.weight", Dim::vocab, Dim::hidden};
inline constexpr TensorRole kDivisorsRole = {"rope_freqs.weight", "", Dim::half_head, Dim::none};

// Names of a layer's tensors.
inline std::string gguf_name(const TensorRole& role, uint32_t layer) {
    return "blk." + std::to_string(layer) + "." + role.gguf;
}
inline std::string huggingface_name(const TensorRole& role, uint32_t layer) {
    return "model.layers." + std::to_string(layer) + "." + role.huggingface;
}

} // namespace auspex
