// The numbers of a Llama checkpoint, how files spell them, and the ranges they must keep.
#pragma once

#include "base/status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace auspex {

struct GgufContents;

// How rotary frequencies depart from theta^(-2i / head_dim).
struct RopeScaling {
    enum class Kind { none, linear, llama3 } kind = Kind::none;
    float factor = 1.0f;                              // linear and llama3
    float low_freq_factor = 1.0f, high_freq_factor = 4.0f; // llama3
    uint32_t original_max_position = 8192;            // llama3: tokens

    bool operator==(const RopeScaling&) const = default;
};

// Defaults are those of transformers' LlamaConfig for keys that a file may leave out.
struct LlamaConfig {
    uint32_t hidden_size = 0; // d; n_heads × head_dim may differ from it
    uint32_t n_layers = 0;
    uint32_t n_heads = 0;    // query heads
    uint32_t n_kv_heads = 0; // n_heads is a multiple
    uint32_t head_dim = 0;   // 32, 64 or 128
    uint32_t ffn_size = 0;
    uint32_t vocab_size = 0;   // rows of the embedding; the tokenizer may know fewer ids
    uint32_t max_position = 0; // tokens
    float rms_eps = 1e-6f;
    float rope_theta = 10000.0f;
    RopeScaling rope_scaling;
    std::vector<float> rope_divisors; // (head_dim / 2) of GGUF's rope_freqs.weight; empty: from rope_scaling
    bool tied_embedding = false;
    uint32_t bos_id = 1;
    std::vector<uint32_t> eos_ids; // union of config.json and generation_config.json, ascending; empty of GGUF files,
                                   // whose vocabulary says it

    uint64_t n_parameters() const; // a tied embedding counts once
};

// Angular frequency of each rotated pair, radians per position: (head_dim / 2), in double.
// llama3: Meta's piecewise rule over wavelengths, as transformers' _compute_llama3_parameters states it.
std::vector<double> rope_frequencies(const LlamaConfig& config);

// Reads and checks `folder`/config.json and generation_config.json. bad_file names the key, what was found and what was
// expected. unsupported: another architecture, another kind of rope scaling than none, linear and llama3, attention_bias, an
// activation other than silu, a quantised checkpoint.
Result<LlamaConfig> read_llama_config(const std::string& folder);

// The same from the values of a GGUF file (the first shard) called `path`. Leaves to the tensors: vocab_size when no key
// says it (0), tied_embedding, rope_divisors; to the vocabulary: bos_id, eos_ids. unsupported: another architecture, experts, keys that change the arithmetic.
Result<LlamaConfig> read_gguf_config(const GgufContents& contents, const std::string& path);

// The same checks on a config made in memory (synthetic models). `where` names its origin in errors.
Status check_llama_config(const LlamaConfig& config, const std::string& where);

// How files spell each size, and its range: far above any published Llama, and small enough that no product of a few of
// them overflows 64 bits. Keys of GGUF follow "llama.".
struct SizeKey {
    const char* huggingface;
    const char* gguf;
    uint32_t LlamaConfig::*field;
    uint32_t least, most;
};
inline constexpr SizeKey kSizeKeys[] = {
    {"hidden_size", "embedding_length", &LlamaConfig::hidden_size, 1, 65536},
    {"num_hidden_layers", "block_count", &LlamaConfig::n_layers, 1, 1024},
    {"num_attention_heads", "attention.head_count", &LlamaConfig::n_heads, 1, 1024},
    {"num_key_value_heads", "attention.head_count_kv", &LlamaConfig::n_kv_heads, 1, 1024},
    {"head_dim", "attention.key_length", &LlamaConfig::head_dim, 1, 1024},
    {"intermediate_size", "feed_forward_length", &LlamaConfig::ffn_size, 1, 1u << 18},
    {"vocab_size", "vocab_size", &LlamaConfig::vocab_size, 1, 1u << 20},
    {"max_position_embeddings", "context_length", &LlamaConfig::max_position, 1, 1u << 24},
};

struct RealRange {
    double least, most; // rounded to float when a float is compared
    bool holds(double value) const { return value >= least && value <= most; } // NaN: no
    bool holds(float value) const { return value >= static_cast<float>(least) && value <= static_cast<float>(most); }
};
inline constexpr RealRange kRmsEpsRange = {1e-12, 0.1}, kRopeThetaRange = {1.0, 1e12}, kRopeFactorRange = {1.0, 1e6},
                           rope_wavelength_range = {1e-3, 1e6}, // low_freq_factor, high_freq_factor
                           rope_divisor_range = {1e-3, 1e6};
std::string range_text(const RealRange& range); // "a number from … to …"
std::string range_text(const SizeKey& key);     // "an integer from … to …"

} // namespace auspex
