// The numbers of a Llama checkpoint, read from config.json (and generation_config.json) and checked.
#pragma once

#include "base/status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace auspex {

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
    bool tied_embedding = false;
    uint32_t bos_id = 1;
    std::vector<uint32_t> eos_ids; // union of config.json and generation_config.json, ascending; may be empty

    uint64_t n_parameters() const; // a tied embedding counts once
};

// Reads and checks `folder`/config.json. bad_file names the key, what was found and what was expected.
// unsupported: another architecture, rope_scaling, attention_bias, an activation other than silu, a quantised
// checkpoint.
Result<LlamaConfig> read_llama_config(const std::string& folder);

// The same checks on a config made in memory (synthetic models). `where` names its origin in errors.
Status check_llama_config(const LlamaConfig& config, const std::string& where);

} // namespace auspex
