// The values of a GGUF file as a LlamaConfig. Keys that would change the arithmetic and that the forward pass does not
// have are refused by name; what only tensors can say (vocabulary rows, tied output) is left to gguf_checkpoint.cpp, the
// ids of special tokens to the vocabulary (tokens/gguf_vocabulary.cpp).
#include "base/catching.h"
#include "formats/gguf.h"
#include "model/llama_config.h"

#include <nlohmann/json.hpp>

#include <cmath>

namespace auspex {
namespace {

const char* type_name(GgufType type) {
    constexpr const char* names[] = {"u8", "i8", "u16", "i16", "u32", "i32", "f32", "boolean", "string", "array", "u64", "i64", "f64"};
    return names[static_cast<size_t>(type)]; // the reader knows no others
}

std::string llama(const char* key) {
    return std::string("llama.") + key;
}

// These mean nothing when they are absent or hold `neutral`, and arithmetic that is not here otherwise.
struct UnsupportedKey {
    const char* key; // after "llama."
    double neutral;
    const char* what;
};
constexpr UnsupportedKey kUnsupportedKeys[] = {
    {"expert_count", 0, "mixtures of experts are"},
    {"attention.scale", 0, "another scale of attention is"},
    {"attention.clamp_kqv", 0, "clamped attention is"},
    {"attention.max_alibi_bias", 0, "ALiBi is"},
    {"attn_logit_softcapping", 0, "soft caps are"},
    {"final_logit_softcapping", 0, "soft caps are"},
    {"embedding_scale", 0, "scaled embeddings are"},
    {"residual_scale", 0, "scaled residuals are"},
    {"logit_scale", 0, "scaled logits are"},
    {"rope.scaling.attn_factor", 1, "scaled attention is"},
    {"rope.scaling.yarn_log_multiplier", 0, "YaRN is"},
};

class Keys {
  public:
    Keys(const GgufContents& contents, const std::string& path) : contents_(contents), path_(path) {}

    Status wrong(Code code, const std::string& key, const std::string& what_is, const std::string& expected) const {
        return {code, path_ + ": found " + key + " " + what_is + ", expected " + expected};
    }
    Status missing(const std::string& key, const std::string& expected) const {
        return {Code::bad_file, path_ + ": found no " + key + ", expected " + expected + "; convert the model again"};
    }

    bool has(const std::string& key) const { return contents_.find(key) != nullptr; }

    // The value as it stands in the file, in a few words.
    std::string found(const std::string& key) const {
        const GgufContents::Entry& entry = *contents_.find(key);
        const GgufArray scalar{entry.type, 1, entry.bytes};
        if (entry.type == GgufType::string) return "the text " + in_quotes(*contents_.text_value(key));
        if (entry.type == GgufType::array) return "a list of " + std::to_string(entry.array.count);
        if (entry.type == GgufType::boolean) return *contents_.bool_value(key) ? "true" : "false";
        if (const auto integer = integer_at(scalar, 0)) return std::to_string(*integer);
        if (const auto integer = contents_.unsigned_value(key)) return std::to_string(*integer);
        const auto real = real_at(scalar, 0).value_or(0.0);
        return std::isfinite(real) ? nlohmann::json(real).dump() : std::to_string(real);
    }

    // The same of a number that is written as another kind than the one expected, where the value alone looks right.
    std::string found_with_type(const std::string& key) const {
        const GgufType type = contents_.find(key)->type;
        const bool is_number = type != GgufType::string && type != GgufType::array && type != GgufType::boolean;
        return found(key) + (is_number ? std::string(" of type ") + type_name(type) : "");
    }

    // Absent leaves `out` as it is; wrong types and values are errors.
    Status text(const std::string& key, std::string& out) const {
        if (!has(key)) return ok_status();
        const auto value = contents_.text_value(key);
        if (!value) return wrong(Code::bad_file, key, found(key), "a text");
        out = *value;
        return ok_status();
    }
    Status real(const std::string& key, const RealRange& range, float& out) const {
        if (!has(key)) return ok_status();
        const auto value = contents_.real_value(key);
        if (!value) return wrong(Code::bad_file, key, found_with_type(key), range_text(range) + " of type f32 or f64");
        // The range is that of floats: a file's f32 may lie a rounding outside of it in double.
        if (!range.holds(static_cast<float>(*value)))
            return wrong(Code::bad_file, key, found(key), range_text(range));
        out = static_cast<float>(*value);
        return ok_status();
    }
    Status integer(const std::string& key, uint64_t least, uint64_t most, uint32_t& out) const {
        if (!has(key)) return ok_status();
        const auto value = contents_.unsigned_value(key);
        if (!value || *value < least || *value > most)
            return wrong(Code::bad_file, key, contents_.real_value(key) ? found_with_type(key) : found(key),
                         "an integer from " + std::to_string(least) + " to " + std::to_string(most));
        out = static_cast<uint32_t>(*value);
        return ok_status();
    }
    // A number, or a list with the same number for every layer.
    Status size(const std::string& key, const SizeKey& range, uint32_t n_layers, uint32_t& out) const {
        const GgufContents::Entry* entry = contents_.find(key);
        if (!entry || entry->type != GgufType::array) return integer(key, range.least, range.most, out);
        const GgufArray& list = entry->array;
        if (list.count != n_layers || !integer_at(list, 0))
            return wrong(Code::bad_file, key, found(key), std::to_string(n_layers) + " integers, one for each layer");
        const int64_t value = *integer_at(list, 0);
        for (uint64_t i = 1; i < list.count; ++i)
            if (integer_at(list, i) != value)
                return wrong(Code::unsupported, key, "with different values by layer",
                             "the same everywhere; models whose layers differ are not supported");
        if (value < int64_t{range.least} || value > int64_t{range.most})
            return wrong(Code::bad_file, key, std::to_string(value) + " for each layer", range_text(range));
        out = static_cast<uint32_t>(value);
        return ok_status();
    }

    const GgufContents& contents() const { return contents_; }

  private:
    const GgufContents& contents_;
    const std::string& path_;
};

Status check_kind(const Keys& keys) {
    std::string architecture, type = "model";
    AUSPEX_TRY(keys.text("general.architecture", architecture));
    if (architecture.empty()) return keys.missing("general.architecture", "\"llama\"");
    if (architecture != "llama")
        return keys.wrong(Code::unsupported, "general.architecture", in_quotes(architecture),
                          "\"llama\"; only Llama models are supported");
    AUSPEX_TRY(keys.text("general.type", type));
    if (type != "model")
        return keys.wrong(Code::unsupported, "general.type", in_quotes(type),
                          "\"model\"; name the file of the whole model");
    return ok_status();
}

Status check_features(const Keys& keys) {
    const GgufContents& contents = keys.contents();
    for (const UnsupportedKey& one : kUnsupportedKeys) {
        const std::string key = llama(one.key);
        if (!keys.has(key)) continue;
        const auto integer = contents.unsigned_value(key);
        const auto value = integer ? std::optional(static_cast<double>(*integer)) : contents.real_value(key);
        if (!value || (*value != one.neutral && *value != 0.0))
            return keys.wrong(Code::unsupported, key, keys.found(key),
                              nlohmann::json(one.neutral).dump() + " or none; " + one.what + " not supported");
    }
    const std::string causal = llama("attention.causal");
    if (keys.has(causal) && contents.bool_value(causal) != true)
        return keys.wrong(Code::unsupported, causal, keys.found(causal), "true; only causal models are supported");
    return ok_status();
}

Status read_sizes(const Keys& keys, LlamaConfig& out) {
    for (const SizeKey& key : kSizeKeys) {
        const std::string name = llama(key.gguf);
        uint32_t& value = out.*key.field;
        AUSPEX_TRY(keys.size(name, key, out.n_layers, value));
        if (value != 0 || key.field == &LlamaConfig::vocab_size) continue; // absent: rows of the embedding
        if (key.field == &LlamaConfig::n_kv_heads) {
            value = out.n_heads;
        } else if (key.field == &LlamaConfig::head_dim) {
            if (out.hidden_size % out.n_heads != 0)
                return keys.wrong(Code::bad_file, "no " + name + ", and llama.embedding_length",
                                  std::to_string(out.hidden_size) + " with llama.attention.head_count " +
                                      std::to_string(out.n_heads),
                                  "a multiple, or " + name);
            value = out.hidden_size / out.n_heads;
        } else {
            return keys.missing(name, range_text(key));
        }
    }
    for (const char* key : {"attention.value_length", "rope.dimension_count"}) {
        uint32_t value = out.head_dim;
        AUSPEX_TRY(keys.integer(llama(key), 1, 1024, value));
        if (value != out.head_dim)
            return keys.wrong(Code::unsupported, llama(key), std::to_string(value),
                              std::to_string(out.head_dim) + ", the head size; others are not supported");
    }
    uint32_t window = 0;
    AUSPEX_TRY(keys.integer(llama("attention.sliding_window"), 0, ~uint32_t{0}, window));
    if (window != 0 && window < out.max_position)
        return keys.wrong(Code::unsupported, llama("attention.sliding_window"), std::to_string(window),
                          "none below llama.context_length; sliding windows are not supported");
    return ok_status();
}

// Without a type, a factor means linear, as llama.cpp has it; "scale_linear" is its older name. What Meta's models need
// comes as a tensor, rope_freqs.weight.
Status read_rope(const Keys& keys, LlamaConfig& out) {
    AUSPEX_TRY(keys.real(llama("rope.freq_base"), kRopeThetaRange, out.rope_theta));
    const std::string type_key = llama("rope.scaling.type");
    std::string type;
    AUSPEX_TRY(keys.text(type_key, type));
    if (type == "none") return ok_status();
    if (!type.empty() && type != "linear")
        return keys.wrong(Code::unsupported, type_key, in_quotes(type),
                          "\"none\" or \"linear\"; other kinds are not supported");
    const std::string factor = llama("rope.scaling.factor"), older = llama("rope.scale_linear");
    if (!keys.has(factor) && !keys.has(older))
        return type.empty() ? ok_status() : keys.missing(factor, range_text(kRopeFactorRange) + " beside " + type_key);
    out.rope_scaling.kind = RopeScaling::Kind::linear;
    return keys.real(keys.has(factor) ? factor : older, kRopeFactorRange, out.rope_scaling.factor);
}

} // namespace

Result<LlamaConfig> read_gguf_config(const GgufContents& contents, const std::string& path) {
    return catching(path, "to read it", [&]() -> Result<LlamaConfig> {
        const Keys keys(contents, path);
        const std::string rms_eps = llama("attention.layer_norm_rms_epsilon");
        LlamaConfig config;
        AUSPEX_TRY(check_kind(keys));
        AUSPEX_TRY(check_features(keys));
        AUSPEX_TRY(read_sizes(keys, config));
        if (!keys.has(rms_eps)) return keys.missing(rms_eps, range_text(kRmsEpsRange));
        AUSPEX_TRY(keys.real(rms_eps, kRmsEpsRange, config.rms_eps));
        AUSPEX_TRY(read_rope(keys, config));
        return config;
    });
}

} // namespace auspex
