// Model folders made for one test: a tiny valid checkpoint to damage, and what every refusal shares.
#pragma once

#include "base/status.h"
#include "temp_folder.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace auspex::test {

// A copy of `text` with the one occurrence of `from` replaced.
inline std::string with(std::string text, std::string_view from, std::string_view to) {
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from << " in " << text;
    return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

// config.json of a one-layer model: 8 wide, 2 query heads on 1 key head of 32, vocabulary of 16, untied.
inline std::string tiny_config() {
    return R"({
  "architectures": ["LlamaForCausalLM"],
  "model_type": "llama",
  "hidden_size": 8,
  "intermediate_size": 12,
  "num_hidden_layers": 1,
  "num_attention_heads": 2,
  "num_key_value_heads": 1,
  "head_dim": 32,
  "vocab_size": 16,
  "rms_norm_eps": 1e-05,
  "rope_theta": 10000.0,
  "rope_scaling": null,
  "max_position_embeddings": 64,
  "tie_word_embeddings": false,
  "bos_token_id": 1,
  "eos_token_id": 2,
  "hidden_act": "silu",
  "attention_bias": false,
  "mlp_bias": false,
  "torch_dtype": "bfloat16"
})";
}

// Little-endian header length, header, data.
inline std::string safetensors_with_length(uint64_t header_bytes, std::string_view header, std::string_view data) {
    std::string out;
    for (uint32_t shift = 0; shift < 64; shift += 8)
        out += static_cast<char>(header_bytes >> shift & 0xff);
    return out.append(header).append(data);
}
inline std::string safetensors(std::string_view header, std::string_view data) {
    return safetensors_with_length(header.size(), header, data);
}

// Three tensors and 44 bytes of data, in an order that is not that of the names.
inline std::string tiny_header() {
    return R"({"__metadata__":{"format":"pt"},)"
           R"("model.norm.weight":{"dtype":"BF16","shape":[8],"data_offsets":[0,16]},)"
           R"("lm_head.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[16,40]},)"
           R"("a":{"dtype":"F16","shape":[],"data_offsets":[40,42]},)"
           R"("ids":{"dtype":"U8","shape":[2,1],"data_offsets":[42,44]}})";
}
inline std::string tiny_data() {
    std::string data;
    for (char i = 0; i < 44; ++i)
        data += i;
    return data;
}

inline void write_tiny_model(const TempFolder& folder) {
    folder.write("config.json", tiny_config());
    folder.write("model.safetensors", safetensors(tiny_header(), tiny_data()));
}

// What every refusal must be: the right code and one printable line that names the file.
inline void expect_refused(const Status& status, Code code, const std::string& path, const std::string& what) {
    EXPECT_EQ(status.code(), code) << what << ": " << status.message();
    EXPECT_NE(status.message().find(path), std::string::npos) << what << ": " << status.message();
    EXPECT_GT(status.message().size(), path.size() + 8) << what;
    EXPECT_LT(status.message().size(), path.size() + 600) << what;
    constexpr std::string_view remedy = "fetch the file again";
    EXPECT_EQ(status.message().find(remedy), status.message().rfind(remedy)) << what << ": said twice: " << status.message();
    for (char c : status.message())
        EXPECT_TRUE(static_cast<unsigned char>(c) >= ' ' && c != 0x7f)
            << what << ": control character in " << status.message();
}

// Small deterministic numbers for mutation tests.
class Dice {
  public:
    explicit Dice(uint64_t seed) : state_(seed) {}
    uint64_t below(uint64_t n) {
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        return (state_ >> 33) % n;
    }

  private:
    uint64_t state_;
};

// One to four random edits: a byte overwritten (often by another byte of the text, which keeps JSON nearly valid),
// a span removed, repeated or cut off.
inline std::string mutated(std::string text, Dice& dice) {
    for (uint64_t edits = 1 + dice.below(4); edits > 0 && !text.empty(); --edits) {
        const size_t at = dice.below(text.size()), span = 1 + dice.below(12);
        switch (dice.below(6)) {
        case 0:
            text[at] = static_cast<char>(dice.below(256));
            break;
        case 1:
            text[at] = text[dice.below(text.size())];
            break;
        case 2:
            text[at] = "0123456789[]{}\",:-.e"[dice.below(20)];
            break;
        case 3:
            text.erase(at, span);
            break;
        case 4:
            text.insert(at, text.substr(dice.below(text.size()), span));
            break;
        default:
            if (dice.below(4) == 0) text.resize(at);
        }
    }
    return text;
}

} // namespace auspex::test
