// Small random models with the byte-level vocabulary of tests/data, some with control tokens after it.
#pragma once

#include "model/model_files.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace auspex::test {

constexpr uint32_t kBpeTokens = 838; // of tests/data/bpe

// Random weights of `seed`, the vocabulary, these control tokens with the next ids, and some rows of padding after them.
inline void write_bpe_model(const TempFolder& folder, uint64_t seed, const std::vector<std::string>& added, uint32_t n_padding) {
    const std::string data = std::string(AUSPEX_TEST_DATA) + "/bpe/";
    std::ifstream stream(data + "tokenizer.json");
    nlohmann::json tokenizer = nlohmann::json::parse(stream);
    for (uint32_t i = 0; i < added.size(); ++i)
        tokenizer["added_tokens"].push_back({{"id", kBpeTokens + i}, {"content", added[i]}, {"special", true}});
    SyntheticModel model = small_llama(DType::f32);
    model.config.vocab_size = kBpeTokens + static_cast<uint32_t>(added.size()) + n_padding;
    model.seed = seed;
    model.scale = 0.3f;
    write_huggingface(folder, *make_synthetic_checkpoint(model).value());
    folder.write("tokenizer.json", tokenizer.dump());
    std::filesystem::copy_file(data + "tokenizer_config.json", folder.file("tokenizer_config.json"));
}

} // namespace auspex::test
