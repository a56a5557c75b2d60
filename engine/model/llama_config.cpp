// What every LlamaConfig must hold, whichever kind of file it came from: ranges, and relations between the numbers.
#include "model/llama_config.h"

#include <nlohmann/json.hpp>

#include <cmath>

namespace auspex {
namespace {

// The shortest text that gives the number back.
template <typename Real> std::string number_text(Real value) {
    return std::isfinite(value) ? nlohmann::json(value).dump() : std::to_string(value);
}

Status wrong(Code code, const std::string& where, const std::string& key, const std::string& what_is,
             const std::string& expected) {
    return {code, where + ": found " + key + " " + what_is + ", expected " + expected};
}

Status check_real(const std::string& where, const std::string& key, float value, const RealRange& range) {
    if (range.holds(value)) return ok_status();
    return wrong(Code::bad_file, where, key, number_text(value), range_text(range));
}

Status check_rope(const LlamaConfig& config, const std::string& where) {
    AUSPEX_TRY(check_real(where, "rope_theta", config.rope_theta, kRopeThetaRange));
    const RopeScaling& scaling = config.rope_scaling;
    if (scaling.kind != RopeScaling::Kind::none)
        AUSPEX_TRY(check_real(where, "the rope scaling's factor", scaling.factor, kRopeFactorRange));
    if (scaling.kind == RopeScaling::Kind::llama3) {
        AUSPEX_TRY(check_real(where, "low_freq_factor", scaling.low_freq_factor, rope_wavelength_range));
        AUSPEX_TRY(check_real(where, "high_freq_factor", scaling.high_freq_factor, rope_wavelength_range));
        if (!(scaling.high_freq_factor > scaling.low_freq_factor))
            return wrong(Code::bad_file, where, "high_freq_factor", number_text(scaling.high_freq_factor),
                         "more than low_freq_factor " + number_text(scaling.low_freq_factor));
        if (scaling.original_max_position == 0)
            return wrong(Code::bad_file, where, "original_max_position_embeddings", "0", "at least 1");
    }
    if (config.rope_divisors.empty()) return ok_status();
    if (config.rope_divisors.size() != config.head_dim / 2)
        return wrong(Code::bad_file, where, std::to_string(config.rope_divisors.size()), "rope divisors",
                     std::to_string(config.head_dim / 2) + ", half of the head size");
    for (size_t i = 0; i < config.rope_divisors.size(); ++i)
        AUSPEX_TRY(
            check_real(where, "rope divisor [" + std::to_string(i) + "]", config.rope_divisors[i], rope_divisor_range));
    if (scaling.kind != RopeScaling::Kind::none)
        return wrong(Code::unsupported, where, "rope divisors", "beside another rope scaling", "one of them");
    return ok_status();
}

} // namespace

std::string range_text(const RealRange& range) {
    return "a number from " + number_text(range.least) + " to " + number_text(range.most);
}

std::string range_text(const SizeKey& key) {
    return "an integer from " + std::to_string(key.least) + " to " + std::to_string(key.most);
}

uint64_t LlamaConfig::n_parameters() const {
    const uint64_t d = hidden_size;
    const uint64_t attention = d * head_dim * (2 * uint64_t{n_heads} + 2 * uint64_t{n_kv_heads}); // q, o and k, v
    const uint64_t layer = attention + 3 * d * ffn_size + 2 * d;
    return layer * n_layers + d + d * vocab_size * (tied_embedding ? 1 : 2);
}

Status check_llama_config(const LlamaConfig& config, const std::string& where) {
    for (const SizeKey& key : kSizeKeys) {
        const uint32_t value = config.*key.field;
        if (value < key.least || value > key.most)
            return wrong(Code::bad_file, where, key.huggingface, std::to_string(value), range_text(key));
    }
    AUSPEX_TRY(check_real(where, "rms_norm_eps", config.rms_eps, kRmsEpsRange));
    AUSPEX_TRY(check_rope(config, where));
    if (config.n_heads % config.n_kv_heads != 0)
        return wrong(Code::bad_file, where, "num_attention_heads",
                     std::to_string(config.n_heads) + " with num_key_value_heads " + std::to_string(config.n_kv_heads),
                     "a multiple");
    if (config.head_dim != 32 && config.head_dim != 64 && config.head_dim != 128)
        return wrong(Code::unsupported, where, "head_dim", std::to_string(config.head_dim),
                     "32, 64 or 128; other head sizes are not supported");
    if (config.bos_id >= config.vocab_size)
        return wrong(Code::bad_file, where, "bos_token_id", std::to_string(config.bos_id),
                     "less than vocab_size " + std::to_string(config.vocab_size));
    for (uint32_t id : config.eos_ids)
        if (id >= config.vocab_size)
            return wrong(Code::bad_file, where, "eos_token_id", std::to_string(id),
                         "less than vocab_size " + std::to_string(config.vocab_size));
    return ok_status();
}

} // namespace auspex
