// Models whose weights depend on a seed alone, made anew from tests/data/formats_goldens.json, which holds what
// transformers computes with them. The numbers are those of tests/peers/tiny_models.py, where they are defined.
#pragma once

#include "model/file_fixtures.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstring>
#include <vector>

namespace auspex::test {

struct SeededTensor {
    std::string name;
    std::vector<uint64_t> shape; // slowest dimension first
    double base, scale;
    std::vector<float> values;
};

inline nlohmann::json read_format_goldens() {
    std::ifstream in(AUSPEX_TEST_DATA "/formats_goldens.json");
    nlohmann::json goldens = nlohmann::json::parse(in, nullptr, false);
    EXPECT_TRUE(goldens.is_array());
    return goldens;
}

inline uint64_t splitmix64(uint64_t x) {
    uint64_t z = (x + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

inline std::vector<uint32_t> seeded_tokens(const nlohmann::json& golden) {
    const auto seed = golden["seed"].get<uint64_t>(), vocab = golden["config"]["vocab_size"].get<uint64_t>();
    std::vector<uint32_t> tokens(golden["tokens"].get<size_t>());
    for (size_t i = 0; i < tokens.size(); ++i)
        tokens[i] = static_cast<uint32_t>((splitmix64((seed << 48) + (uint64_t{1} << 47) + i) >> 33) % vocab);
    return tokens;
}

// Names, shapes and scales in the order that numbers the tensors.
inline std::vector<SeededTensor> seeded_shapes(const nlohmann::json& config) {
    const auto number = [&](const char* key) { return config[key].get<uint64_t>(); };
    const uint64_t d = number("hidden_size"), ffn = number("intermediate_size"), vocab = number("vocab_size");
    const uint64_t q = number("num_attention_heads") * number("head_dim"),
                   kv = number("num_key_value_heads") * number("head_dim");
    std::vector<SeededTensor> out;
    const auto matrix = [&](const std::string& name, uint64_t rows, uint64_t columns, double gain) {
        out.push_back(
            {name + ".weight", {rows, columns}, 0.0, gain * std::sqrt(3.0 / static_cast<double>(columns)), {}});
    };
    const auto norm = [&](const std::string& name) { out.push_back({name + ".weight", {d}, 1.0, 0.25, {}}); };
    matrix("model.embed_tokens", vocab, d, 2.0);
    for (uint64_t i = 0; i < number("num_hidden_layers"); ++i) {
        const std::string at = "model.layers." + std::to_string(i) + ".";
        norm(at + "input_layernorm");
        matrix(at + "self_attn.q_proj", q, d, 1.5);
        matrix(at + "self_attn.k_proj", kv, d, 1.5);
        matrix(at + "self_attn.v_proj", kv, d, 1.0);
        matrix(at + "self_attn.o_proj", d, q, 1.0);
        norm(at + "post_attention_layernorm");
        matrix(at + "mlp.gate_proj", ffn, d, 1.0);
        matrix(at + "mlp.up_proj", ffn, d, 1.0);
        matrix(at + "mlp.down_proj", d, ffn, 1.0);
    }
    norm("model.norm");
    if (!config["tie_word_embeddings"].get<bool>()) matrix("lm_head", vocab, d, 2.0);
    return out;
}

inline std::vector<SeededTensor> seeded_weights(const nlohmann::json& golden) {
    std::vector<SeededTensor> tensors = seeded_shapes(golden["config"]);
    for (uint64_t t = 0; t < tensors.size(); ++t) {
        uint64_t n = 1;
        for (uint64_t dim : tensors[t].shape)
            n *= dim;
        for (uint64_t i = 0; i < n; ++i) {
            const uint64_t z = splitmix64((golden["seed"].get<uint64_t>() << 48) + (t << 32) + i);
            const double u = static_cast<double>(z >> 40) * 0x1p-23 - 1.0;
            tensors[t].values.push_back(static_cast<float>(tensors[t].base + tensors[t].scale * u));
        }
    }
    return tensors;
}

// A Hugging Face folder in float32, without a tokenizer.
inline void write_seeded_folder(const TempFolder& folder, const nlohmann::json& golden) {
    nlohmann::json header;
    std::string data;
    for (const SeededTensor& tensor : seeded_weights(golden)) {
        const size_t begin = data.size(), bytes = tensor.values.size() * sizeof(float);
        data.resize(begin + bytes);
        std::memcpy(data.data() + begin, tensor.values.data(), bytes);
        header[tensor.name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {begin, begin + bytes}}};
    }
    folder.write("config.json", golden["config"].dump());
    folder.write("model.safetensors", safetensors(header.dump(), data));
}

} // namespace auspex::test
