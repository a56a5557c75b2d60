// The numbers of a Llama checkpoint, read from config.json (and generation_config.json) and checked.
#pragma once

#include "base/status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace auspex {

// How rotary frequencies depart from theta^(-2i / head_dim).
struct RopeScaling {
    enum class Kind { none, linear, llama3 } kind = Kind::none;
    float factor = 1.0f;                              // linear and llama3
    float low_freq_factor = 1.0f, high_freq_factor = 4.0f; // llama3
    uint32_t original_max_position = 8192;            // llama3: tokens
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
    std::vector<uint32_t> eos_ids; // union of config.json and generation_config.json, ascending; may be empty

    uint64_t n_parameters() const; // a tied embedding counts once
};

// Angular frequency of each rotated pair, radians per position: (head_dim / 2), in double.
// llama3: Meta's piecewise rule over wavelengths, as transformers' _compute_llama3_parameters states it.
std::vector<double> rope_frequencies(const LlamaConfig& config);

// Reads and checks `folder`/config.json. bad_file names the key, what was found and what was expected.
// unsupported: another architecture, another kind of rope scaling, attention_bias, an activation other than silu, a quantised
// checkpoint.
Result<LlamaConfig> read_llama_config(const std::string& folder);

// The same checks on a config made in memory (synthetic models). `where` names its origin in errors.
Status check_llama_config(const LlamaConfig& config, const std::string& where);

} // namespace auspex
