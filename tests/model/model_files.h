// One small model written the ways users have it: a Hugging Face folder, whole or in shards, and GGUF, from the tensors of a
// synthetic checkpoint. The writers are independent of the readers under test.
#pragma once

#include "formats/gguf_builder.h"
#include "model/checkpoint.h"
#include "model/file_fixtures.h"

#include <map>

namespace auspex::test {

// Two layers, 32 wide, 4 query heads on 2 key heads of 32, vocabulary of 24, untied.
inline SyntheticModel small_llama(DType dtype = DType::f16) {
    SyntheticModel model;
    LlamaConfig& c = model.config;
    c.hidden_size = 32;
    c.n_layers = 2;
    c.n_heads = 4;
    c.n_kv_heads = 2;
    c.head_dim = 32;
    c.ffn_size = 64;
    c.vocab_size = 24;
    c.max_position = 128;
    c.rms_eps = 1e-5f;
    c.eos_ids = {2};
    model.dtype = dtype;
    return model;
}

inline std::string tensor_bytes(const Checkpoint& checkpoint, const std::string& name) {
    const TensorInfo* tensor = checkpoint.find(name);
    EXPECT_TRUE(tensor) << name;
    if (!tensor) return {};
    std::string bytes(tensor->bytes, '\0');
    const Status status = checkpoint.read(*tensor, 0, std::as_writable_bytes(std::span(bytes)));
    EXPECT_TRUE(status.ok()) << status.message();
    return bytes;
}

// Hugging Face's and GGUF's names of every tensor of a model.
inline std::vector<std::pair<std::string, std::string>> tensor_names(const LlamaConfig& c) {
    std::vector<std::pair<std::string, std::string>> names = {{"model.embed_tokens.weight", "token_embd.weight"}};
    const char* parts[][2] = {{"input_layernorm", "attn_norm"},   {"self_attn.q_proj", "attn_q"},
                              {"self_attn.k_proj", "attn_k"},     {"self_attn.v_proj", "attn_v"},
                              {"self_attn.o_proj", "attn_output"}, {"post_attention_layernorm", "ffn_norm"},
                              {"mlp.gate_proj", "ffn_gate"},      {"mlp.up_proj", "ffn_up"},
                              {"mlp.down_proj", "ffn_down"}};
    for (uint32_t i = 0; i < c.n_layers; ++i)
        for (const auto& part : parts)
            names.push_back({"model.layers." + std::to_string(i) + "." + part[0] + ".weight",
                             "blk." + std::to_string(i) + "." + part[1] + ".weight"});
    names.push_back({"model.norm.weight", "output_norm.weight"});
    if (!c.tied_embedding) names.push_back({"lm_head.weight", "output.weight"});
    return names;
}

// ---- Hugging Face -----------------------------------------------------------------------------------------------------

inline std::string config_json(const LlamaConfig& c) {
    const auto number = [](const char* key, auto value) { return "\"" + std::string(key) + "\": " + std::to_string(value) + ", "; };
    return R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "rms_norm_eps": 1e-5, )" +
           number("hidden_size", c.hidden_size) + number("intermediate_size", c.ffn_size) + number("num_hidden_layers", c.n_layers) +
           number("num_attention_heads", c.n_heads) + number("num_key_value_heads", c.n_kv_heads) + number("head_dim", c.head_dim) +
           number("vocab_size", c.vocab_size) + number("max_position_embeddings", c.max_position) + number("rope_theta", c.rope_theta) +
           number("bos_token_id", c.bos_id) + "\"eos_token_id\": 2, \"tie_word_embeddings\": " + (c.tied_embedding ? "true}" : "false}");
}

// A safetensors file with these tensors of `model`.
inline std::string safetensors_of(const Checkpoint& model, const std::vector<std::string>& names) {
    std::string header = "{", data;
    for (const std::string& name : names) {
        const TensorInfo& tensor = *model.find(name);
        std::string shape;
        for (uint64_t dim : tensor.shape)
            shape += (shape.empty() ? "" : ",") + std::to_string(dim);
        const std::string type = tensor.dtype == DType::f32 ? "F32" : tensor.dtype == DType::f16 ? "F16" : "BF16";
        const std::string begin = std::to_string(data.size());
        data += tensor_bytes(model, name);
        header += (header.size() > 1 ? ",\"" : "\"") + name + R"(":{"dtype":")" + type + R"(","shape":[)" + shape +
                  R"(],"data_offsets":[)" + begin + "," + std::to_string(data.size()) + "]}";
    }
    return safetensors(header + "}", data);
}

inline std::string shard_name(size_t number, size_t count) {
    return "model-0000" + std::to_string(number) + "-of-0000" + std::to_string(count) + ".safetensors";
}

// Tensors are dealt out to the shards in turn.
inline void write_huggingface(const TempFolder& folder, const Checkpoint& model, size_t n_shards = 1) {
    folder.write("config.json", config_json(model.config()));
    std::vector<std::vector<std::string>> shards(n_shards);
    std::string map;
    for (const auto& [name, gguf] : tensor_names(model.config())) {
        size_t at = 0;
        for (size_t i = 1; i < n_shards; ++i)
            if (shards[i].size() < shards[at].size()) at = i;
        shards[at].push_back(name);
        map += (map.empty() ? "" : ",\n") + ("\"" + name + "\": \"" + shard_name(at + 1, n_shards) + "\"");
    }
    if (n_shards == 1) return folder.write("model.safetensors", safetensors_of(model, shards[0]));
    for (size_t i = 0; i < n_shards; ++i)
        folder.write(shard_name(i + 1, n_shards), safetensors_of(model, shards[i]));
    folder.write("model.safetensors.index.json", R"({"metadata": {"total_size": 1}, "weight_map": {)" + map + "}}");
}

// ---- GGUF -------------------------------------------------------------------------------------------------------------

struct GgufPart {
    std::string name;
    uint32_t type;
    std::vector<uint64_t> shape;
    std::string data;
};

// Keys and tensors, to be changed before they become a file.
struct GgufModel {
    GgufBuilder keys;
    std::vector<GgufPart> parts;

    GgufPart& part(const std::string& name) {
        for (GgufPart& one : parts)
            if (one.name == name) return one;
        ADD_FAILURE() << name;
        return parts.front();
    }
    void remove(const std::string& name) {
        EXPECT_EQ(std::erase_if(parts, [&](const GgufPart& one) { return one.name == name; }), 1u) << name;
    }
    std::string bytes() const { return bytes(0, parts.size(), keys); }
    std::string bytes(size_t begin, size_t end, GgufBuilder file) const {
        for (size_t i = begin; i < end; ++i)
            file.tensor(parts[i].name, parts[i].type, parts[i].shape, parts[i].data);
        return file.bytes();
    }
};

// Rows of a matrix with heads, as llama.cpp's converter puts them: (head, half, i) becomes (head, i, half).
inline std::string rotated_in_pairs(const std::string& rows, uint64_t n_rows, uint64_t head_dim) {
    const size_t row_bytes = rows.size() / n_rows;
    std::string out;
    for (uint64_t head = 0; head < n_rows / head_dim; ++head)
        for (uint64_t i = 0; i < head_dim / 2; ++i)
            for (uint64_t half = 0; half < 2; ++half)
                out += rows.substr((head * head_dim + half * (head_dim / 2) + i) * row_bytes, row_bytes);
    return out;
}

inline GgufModel gguf_model(const Checkpoint& model) {
    const LlamaConfig& c = model.config();
    GgufModel out;
    out.keys.set("general.architecture", "llama").set("general.name", "small").set("llama.vocab_size", c.vocab_size);
    out.keys.set("llama.embedding_length", c.hidden_size).set("llama.block_count", c.n_layers);
    out.keys.set("llama.feed_forward_length", c.ffn_size).set("llama.context_length", c.max_position);
    out.keys.set("llama.attention.head_count", c.n_heads).set("llama.attention.head_count_kv", c.n_kv_heads);
    out.keys.set("llama.attention.key_length", c.head_dim).set("llama.attention.value_length", c.head_dim);
    out.keys.set("llama.attention.layer_norm_rms_epsilon", c.rms_eps).set("llama.rope.dimension_count", c.head_dim);
    out.keys.set("llama.rope.freq_base", c.rope_theta).set("tokenizer.ggml.bos_token_id", c.bos_id);
    out.keys.set("tokenizer.ggml.eos_token_id", 2u);
    for (const auto& [name, gguf] : tensor_names(c)) {
        const TensorInfo& tensor = *model.find(name);
        std::string data = tensor_bytes(model, name);
        if (name.ends_with("q_proj.weight") || name.ends_with("k_proj.weight"))
            data = rotated_in_pairs(data, tensor.shape[0], c.head_dim);
        out.parts.push_back({gguf, static_cast<uint32_t>(dtype_info(tensor.dtype).ggml_id), tensor.shape, std::move(data)});
    }
    return out;
}

} // namespace auspex::test
