// Reads config.json and generation_config.json as untrusted text: bounded size and depth, every number in a stated
// range. What the forward pass cannot do is refused here by name, so that nothing runs and is silently wrong.
#include "model/llama_config.h"

#include "base/catching.h"
#include "base/platform.h"
#include "formats/json.h"

#include <algorithm>
#include <optional>

namespace auspex {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxJsonBytes = 1u << 20; // real files are a few KiB; the tree costs up to 30 times the text
constexpr size_t kMaxEosIds = 256;
constexpr uint64_t kMaxOriginalPosition = 1u << 24; // tokens; as max_position_embeddings

Status wrong(Code code, const std::string& where, const std::string& key, const std::string& what_is,
             const std::string& expected) {
    return {code, where + ": found " + key + " " + what_is + ", expected " + expected};
}

// The value of a key, or null where it is absent or null: transformers treats both alike.
const json* value_of(const json& object, const char* key) {
    const auto it = object.find(key);
    return it == object.end() || it->is_null() ? nullptr : &*it;
}

Status read_integer(const json& value, const std::string& where, const std::string& key, uint64_t least, uint64_t most,
                    uint32_t& out) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() < least || value.get<uint64_t>() > most)
        return wrong(Code::bad_file, where, key, json_found(value),
                     "an integer from " + std::to_string(least) + " to " + std::to_string(most));
    out = static_cast<uint32_t>(value.get<uint64_t>());
    return ok_status();
}

// `name` is the key for messages, with the object it stands in. An absent key leaves `out` as it is.
Status read_real(const json& object, const std::string& where, const std::string& name, const char* key,
                 const RealRange& range, float& out) {
    const json* value = value_of(object, key);
    if (!value) return ok_status();
    if (!value->is_number() || !range.holds(value->get<double>()))
        return wrong(Code::bad_file, where, name, json_found(*value), range_text(range));
    out = static_cast<float>(value->get<double>());
    return ok_status();
}

Status read_bool(const json& root, const std::string& where, const char* key, bool& out) {
    const json* value = value_of(root, key);
    if (!value) return ok_status();
    if (!value->is_boolean()) return wrong(Code::bad_file, where, key, json_found(*value), "true or false");
    out = value->get<bool>();
    return ok_status();
}

// One id or a list of them, added to `out`.
Status read_eos(const json& value, const std::string& where, uint32_t vocab_size, std::vector<uint32_t>& out) {
    const bool list = value.is_array();
    if (list && value.size() > kMaxEosIds)
        return wrong(Code::bad_file, where, "eos_token_id", "with " + std::to_string(value.size()) + " entries",
                     "at most " + std::to_string(kMaxEosIds));
    for (size_t i = 0; i < (list ? value.size() : 1); ++i) {
        uint32_t id = 0;
        AUSPEX_TRY(read_integer(list ? value[i] : value, where, "eos_token_id", 0, vocab_size - 1, id));
        out.push_back(id);
    }
    return ok_status();
}

Status check_text(const json& value, const std::string& where, const std::string& key, const std::string& expected,
                  const std::string& advice) {
    if (!value.is_string())
        return wrong(Code::bad_file, where, key, json_found(value), "the text " + in_quotes(expected));
    if (value.get_ref<const std::string&>() == expected) return ok_status();
    return wrong(Code::unsupported, where, key, in_quotes(value.get_ref<const std::string&>()),
                 in_quotes(expected) + "; " + advice);
}

Status check_architecture(const json& root, const std::string& where) {
    const std::string advice = "only Llama models are supported";
    const json* architectures = value_of(root, "architectures");
    const json* model_type = value_of(root, "model_type");
    if (!architectures && !model_type)
        return wrong(Code::bad_file, where, "neither architectures", "nor model_type", "model_type \"llama\"");
    if (architectures) {
        if (!architectures->is_array() || architectures->empty())
            return wrong(Code::bad_file, where, "architectures", json_found(*architectures),
                         "a list with \"LlamaForCausalLM\"");
        AUSPEX_TRY(check_text((*architectures)[0], where, "architectures", "LlamaForCausalLM", advice));
    }
    return model_type ? check_text(*model_type, where, "model_type", "llama", advice) : ok_status();
}

// Features that change the arithmetic and that the forward pass does not have.
Status check_features(const json& root, const std::string& where) {
    if (const json* quantisation = value_of(root, "quantization_config")) {
        const json* method = quantisation->is_object() ? value_of(*quantisation, "quant_method") : quantisation;
        return wrong(Code::unsupported, where, "quantization_config", method ? json_found(*method) : "of no named kind",
                     "weights in BF16, F16 or F32; use the unquantised checkpoint, or a GGUF file");
    }
    if (const json* act = value_of(root, "hidden_act"))
        AUSPEX_TRY(check_text(*act, where, "hidden_act", "silu", "other activations are not supported"));
    for (const char* key : {"attention_bias", "mlp_bias"}) {
        bool bias = false;
        AUSPEX_TRY(read_bool(root, where, key, bias));
        if (bias) return wrong(Code::unsupported, where, key, "true", "false; biases are not supported");
    }
    return ok_status();
}

// What one of the two objects, rope_scaling (transformers before 5) and rope_parameters, says.
struct Rope {
    RopeScaling scaling;
    std::optional<float> theta;
};

// "rope_type", which older files call "type".
Result<std::string> read_rope_kind(const json& object, const std::string& where, const std::string& name) {
    const json *kind = value_of(object, "rope_type"), *older = value_of(object, "type");
    for (const json* one : {kind, older})
        if (one && !one->is_string())
            return wrong(Code::bad_file, where, name + (one == kind ? ".rope_type" : ".type"), json_found(*one),
                         "the text \"default\", \"linear\" or \"llama3\"");
    if (kind && older && *kind != *older)
        return wrong(Code::bad_file, where, name + ".rope_type", json_found(*kind) + " with type " + json_found(*older),
                     "the same kind in both; remove one of them");
    if (kind || older) return (kind ? kind : older)->get<std::string>();
    if (value_of(object, "factor"))
        return wrong(Code::unsupported, where, name, "with a factor, of no named kind", "rope_type beside it");
    return std::string("default");
}

Result<Rope> read_rope_object(const json& object, const std::string& where, const std::string& name) {
    if (!object.is_object()) return wrong(Code::bad_file, where, name, json_found(object), "an object");
    for (const auto& [key, value] : object.items())
        if (value.is_object())
            return wrong(Code::unsupported, where, name + "." + in_quotes(key), "an object",
                         "one set of numbers for all layers");
    AUSPEX_TRY_ASSIGN(kind, read_rope_kind(object, where, name));
    Rope rope;
    if (kind == "linear") {
        rope.scaling.kind = RopeScaling::Kind::linear;
    } else if (kind == "llama3") {
        rope.scaling.kind = RopeScaling::Kind::llama3;
    } else if (kind != "default") {
        return wrong(Code::unsupported, where, name, "of kind " + in_quotes(kind),
                     "\"default\", \"linear\" or \"llama3\"; other kinds are not supported");
    }
    const auto real = [&](const char* key, const RealRange& range, float& out) -> Status {
        if (!value_of(object, key))
            return wrong(Code::bad_file, where, name, "without " + std::string(key), range_text(range));
        return read_real(object, where, name + "." + key, key, range, out);
    };
    RopeScaling& scaling = rope.scaling;
    if (scaling.kind != RopeScaling::Kind::none) AUSPEX_TRY(real("factor", kRopeFactorRange, scaling.factor));
    if (scaling.kind == RopeScaling::Kind::llama3) {
        AUSPEX_TRY(real("low_freq_factor", rope_wavelength_range, scaling.low_freq_factor));
        AUSPEX_TRY(real("high_freq_factor", rope_wavelength_range, scaling.high_freq_factor));
        constexpr const char* key = "original_max_position_embeddings";
        AUSPEX_TRY(read_integer(object.value(key, json()), where, name + "." + key, 1, kMaxOriginalPosition,
                                scaling.original_max_position));
    }
    if (value_of(object, "rope_theta")) {
        float theta = 0.0f;
        AUSPEX_TRY(read_real(object, where, name + ".rope_theta", "rope_theta", kRopeThetaRange, theta));
        rope.theta = theta;
    }
    return rope;
}

// transformers ≥ 5 moves rope_theta and the scaling into one object, `rope_parameters`. Versions disagree about which
// of two places counts, so both must say the same.
Status read_rope(const json& root, const std::string& where, LlamaConfig& out) {
    for (const json* place : {&root, value_of(root, "rope_parameters"), value_of(root, "rope_scaling")}) {
        const json* share = place && place->is_object() ? value_of(*place, "partial_rotary_factor") : nullptr;
        if (share && *share != 1.0)
            return wrong(Code::unsupported, where, "partial_rotary_factor", json_found(*share),
                         "1; heads are rotated whole");
    }
    const json* theta = value_of(root, "rope_theta");
    AUSPEX_TRY(read_real(root, where, "rope_theta", "rope_theta", kRopeThetaRange, out.rope_theta));
    const char* scaling_said = nullptr;
    const char* theta_said = theta ? "rope_theta" : nullptr;
    for (const char* name : {"rope_scaling", "rope_parameters"}) {
        const json* object = value_of(root, name);
        if (!object) continue;
        AUSPEX_TRY_ASSIGN(rope, read_rope_object(*object, where, name));
        if (scaling_said && !(rope.scaling == out.rope_scaling))
            return wrong(Code::bad_file, where, name, "and " + std::string(scaling_said) + " with different scalings",
                         "the same in both; remove the wrong one");
        if (rope.theta && theta_said && *rope.theta != out.rope_theta)
            return wrong(Code::bad_file, where, name, "and " + std::string(theta_said) + " with different rope_theta",
                         "the same in both; remove the wrong one");
        out.rope_scaling = rope.scaling;
        scaling_said = name;
        if (rope.theta) {
            out.rope_theta = *rope.theta;
            theta_said = name;
        }
    }
    return ok_status();
}

Status read_sizes(const json& root, const std::string& where, LlamaConfig& out) {
    for (const SizeKey& key : kSizeKeys) {
        const json* value = value_of(root, key.huggingface);
        if (value) {
            AUSPEX_TRY(read_integer(*value, where, key.huggingface, key.least, key.most, out.*key.field));
        } else if (key.field == &LlamaConfig::n_kv_heads) {
            out.n_kv_heads = out.n_heads; // files from before grouped attention
        } else if (key.field == &LlamaConfig::head_dim) {
            if (out.hidden_size % out.n_heads != 0)
                return wrong(Code::bad_file, where, "no head_dim, and hidden_size " + std::to_string(out.hidden_size),
                             "with num_attention_heads " + std::to_string(out.n_heads), "a multiple, or head_dim");
            out.head_dim = out.hidden_size / out.n_heads;
        } else {
            return wrong(Code::bad_file, where, "no", key.huggingface, range_text(key));
        }
    }
    return ok_status();
}

Status read_special_ids(const json& root, const std::string& where, const std::string& folder, LlamaConfig& out) {
    if (const json* bos = value_of(root, "bos_token_id"))
        AUSPEX_TRY(read_integer(*bos, where, "bos_token_id", 0, out.vocab_size - 1, out.bos_id));
    const json* eos = value_of(root, "eos_token_id");
    if (eos) AUSPEX_TRY(read_eos(*eos, where, out.vocab_size, out.eos_ids));
    bool said = root.contains("eos_token_id"); // null means that there is none
    const std::string generation = folder + "/generation_config.json";
    if (path_exists(generation)) {
        AUSPEX_TRY_ASSIGN(object, read_json_object(generation, kMaxJsonBytes));
        if (const json* more = value_of(object, "eos_token_id"))
            AUSPEX_TRY(read_eos(*more, generation, out.vocab_size, out.eos_ids));
        said = said || object.contains("eos_token_id");
    }
    if (!said && out.vocab_size > 2) out.eos_ids.push_back(2); // transformers' default
    std::sort(out.eos_ids.begin(), out.eos_ids.end());
    out.eos_ids.erase(std::unique(out.eos_ids.begin(), out.eos_ids.end()), out.eos_ids.end());
    return ok_status();
}

} // namespace

Result<LlamaConfig> read_llama_config(const std::string& folder) {
    const std::string where = folder + "/config.json";
    return catching(where, "to read it", [&]() -> Result<LlamaConfig> {
        AUSPEX_TRY_ASSIGN(root, read_json_object(where, kMaxJsonBytes));
        AUSPEX_TRY(check_architecture(root, where));
        AUSPEX_TRY(check_features(root, where));
        LlamaConfig config;
        AUSPEX_TRY(read_sizes(root, where, config));
        AUSPEX_TRY(read_real(root, where, "rms_norm_eps", "rms_norm_eps", kRmsEpsRange, config.rms_eps));
        AUSPEX_TRY(read_rope(root, where, config));
        AUSPEX_TRY(read_bool(root, where, "tie_word_embeddings", config.tied_embedding));
        AUSPEX_TRY(read_special_ids(root, where, folder, config));
        AUSPEX_TRY(check_llama_config(config, where));
        return config;
    });
}

} // namespace auspex
