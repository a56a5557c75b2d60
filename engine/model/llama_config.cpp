// Reads config.json and generation_config.json as untrusted text: bounded size and depth, every number in a stated
// range. What the forward pass cannot do is refused here by name, so that nothing runs and is silently wrong.
#include "model/llama_config.h"

#include "base/platform.h"
#include "formats/json.h"

#include <algorithm>
#include <exception>

namespace auspex {
namespace {

using nlohmann::json;

constexpr uint64_t max_json_bytes = 4u << 20; // real files are a few KiB; the tree costs about 20 times the text
constexpr size_t max_eos_ids = 256;
constexpr const char* head_dim_key = "head_dim";

// The ranges are far above any published Llama, and small enough that no product of a few of them overflows 64 bits.
struct IntegerKey {
    const char* key;
    uint32_t LlamaConfig::*field;
    uint32_t least, most;
};
constexpr IntegerKey integer_keys[] = {
    {"hidden_size", &LlamaConfig::hidden_size, 1, 65536},
    {"num_hidden_layers", &LlamaConfig::n_layers, 1, 1024},
    {"num_attention_heads", &LlamaConfig::n_heads, 1, 1024},
    {"num_key_value_heads", &LlamaConfig::n_kv_heads, 1, 1024},
    {head_dim_key, &LlamaConfig::head_dim, 1, 1024},
    {"intermediate_size", &LlamaConfig::ffn_size, 1, 1u << 18},
    {"vocab_size", &LlamaConfig::vocab_size, 1, 1u << 20},
    {"max_position_embeddings", &LlamaConfig::max_position, 1, 1u << 24},
};

struct RealKey {
    const char* key;
    float LlamaConfig::*field;
    double least, most; // rounded to float when a float is compared
};
constexpr RealKey rms_eps_key = {"rms_norm_eps", &LlamaConfig::rms_eps, 1e-12, 0.1};
constexpr RealKey rope_theta_key = {"rope_theta", &LlamaConfig::rope_theta, 1.0, 1e12};

std::string number_text(double value) {
    return json(value).dump();
}

Status wrong(Code code, const std::string& where, const std::string& key, const std::string& what_is,
             const std::string& expected) {
    return {code, where + ": found " + key + " " + what_is + ", expected " + expected};
}

std::string from_to(const std::string& least, const std::string& most) {
    return "from " + least + " to " + most;
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
                     "an integer " + from_to(std::to_string(least), std::to_string(most)));
    out = static_cast<uint32_t>(value.get<uint64_t>());
    return ok_status();
}

Status read_real(const json& object, const std::string& where, const RealKey& key, LlamaConfig& out) {
    const json* value = value_of(object, key.key);
    if (!value) return ok_status();
    const double number = value->is_number() ? value->get<double>() : 0.0;
    if (!(number >= key.least && number <= key.most)) // NaN compares false
        return wrong(Code::bad_file, where, key.key, json_found(*value),
                     "a number " + from_to(number_text(key.least), number_text(key.most)));
    out.*key.field = static_cast<float>(number);
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
    if (list && value.size() > max_eos_ids)
        return wrong(Code::bad_file, where, "eos_token_id", "with " + std::to_string(value.size()) + " entries",
                     "at most " + std::to_string(max_eos_ids));
    for (size_t i = 0; i < (list ? value.size() : 1); ++i) {
        uint32_t id = 0;
        AUSPEX_TRY(read_integer(list ? value[i] : value, where, "eos_token_id", 0, vocab_size - 1, id));
        out.push_back(id);
    }
    return ok_status();
}

Status check_text(const json& value, const std::string& where, const std::string& key, const std::string& expected,
                  const std::string& advice) {
    if (!value.is_string()) return wrong(Code::bad_file, where, key, json_found(value), "the text " + in_quotes(expected));
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

// The kind of a rope_scaling or quantization_config object, by whichever of the keys it uses.
std::string kind_of(const json& value, std::initializer_list<const char*> keys) {
    if (!value.is_object()) return json_found(value);
    for (const char* key : keys)
        if (const json* kind = value_of(value, key))
            return kind->is_string() ? in_quotes(kind->get_ref<const std::string&>()) : json_found(*kind);
    return "of no named kind";
}

// Features that change the arithmetic and that the forward pass does not have.
Status check_features(const json& root, const std::string& where) {
    if (const json* quantisation = value_of(root, "quantization_config"))
        return wrong(Code::unsupported, where, "quantization_config", kind_of(*quantisation, {"quant_method"}),
                     "weights in BF16, F16 or F32; use the unquantised checkpoint");
    if (const json* scaling = value_of(root, "rope_scaling"))
        return wrong(Code::unsupported, where, "rope_scaling", kind_of(*scaling, {"rope_type", "type"}),
                     "null; scaled rotary embeddings are not supported yet");
    if (const json* act = value_of(root, "hidden_act"))
        AUSPEX_TRY(check_text(*act, where, "hidden_act", "silu", "other activations are not supported"));
    for (const char* key : {"attention_bias", "mlp_bias"}) {
        bool bias = false;
        AUSPEX_TRY(read_bool(root, where, key, bias));
        if (bias) return wrong(Code::unsupported, where, key, "true", "false; biases are not supported");
    }
    return ok_status();
}

// transformers ≥ 5 moves rope_theta and the scaling into one object, `rope_parameters`.
Status read_rope(const json& root, const std::string& where, LlamaConfig& out) {
    AUSPEX_TRY(read_real(root, where, rope_theta_key, out));
    const json* parameters = value_of(root, "rope_parameters");
    if (!parameters) return ok_status();
    if (!parameters->is_object())
        return wrong(Code::bad_file, where, "rope_parameters", json_found(*parameters), "an object");
    for (const char* key : {"rope_type", "type"})
        if (const json* type = value_of(*parameters, key))
            AUSPEX_TRY(check_text(*type, where, std::string("rope_parameters.") + key, "default",
                                  "scaled rotary embeddings are not supported yet"));
    return read_real(*parameters, where, rope_theta_key, out);
}

Status read_sizes(const json& root, const std::string& where, LlamaConfig& out) {
    for (const IntegerKey& key : integer_keys) {
        const json* value = value_of(root, key.key);
        if (value) {
            AUSPEX_TRY(read_integer(*value, where, key.key, key.least, key.most, out.*key.field));
        } else if (key.field == &LlamaConfig::n_kv_heads) {
            out.n_kv_heads = out.n_heads; // files from before grouped attention
        } else if (key.field == &LlamaConfig::head_dim) {
            if (out.hidden_size % out.n_heads != 0)
                return wrong(Code::bad_file, where, "no head_dim, and hidden_size " + std::to_string(out.hidden_size),
                             "with num_attention_heads " + std::to_string(out.n_heads), "a multiple, or head_dim");
            out.head_dim = out.hidden_size / out.n_heads;
        } else {
            return wrong(Code::bad_file, where, "no", key.key,
                         "an integer " + from_to(std::to_string(key.least), std::to_string(key.most)));
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
        AUSPEX_TRY_ASSIGN(object, read_json_object(generation, max_json_bytes));
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

uint64_t LlamaConfig::n_parameters() const {
    const uint64_t d = hidden_size;
    const uint64_t attention = d * head_dim * (2 * uint64_t{n_heads} + 2 * uint64_t{n_kv_heads}); // q, o and k, v
    const uint64_t layer = attention + 3 * d * ffn_size + 2 * d;
    return layer * n_layers + d + d * vocab_size * (tied_embedding ? 1 : 2);
}

Status check_llama_config(const LlamaConfig& config, const std::string& where) {
    for (const IntegerKey& key : integer_keys) {
        const uint32_t value = config.*key.field;
        if (value < key.least || value > key.most)
            return wrong(Code::bad_file, where, key.key, std::to_string(value),
                         "an integer " + from_to(std::to_string(key.least), std::to_string(key.most)));
    }
    for (const RealKey& key : {rms_eps_key, rope_theta_key}) {
        const float value = config.*key.field;
        if (!(value >= static_cast<float>(key.least) && value <= static_cast<float>(key.most)))
            return wrong(Code::bad_file, where, key.key, json_found(json(value)),
                         "a number " + from_to(number_text(key.least), number_text(key.most)));
    }
    if (config.n_heads % config.n_kv_heads != 0)
        return wrong(Code::bad_file, where, "num_attention_heads",
                     std::to_string(config.n_heads) + " with num_key_value_heads " + std::to_string(config.n_kv_heads),
                     "a multiple");
    if (config.head_dim != 32 && config.head_dim != 64 && config.head_dim != 128)
        return wrong(Code::unsupported, where, head_dim_key, std::to_string(config.head_dim),
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

Result<LlamaConfig> read_llama_config(const std::string& folder) {
    const std::string where = folder + "/config.json";
    try {
        AUSPEX_TRY_ASSIGN(root, read_json_object(where, max_json_bytes));
        AUSPEX_TRY(check_architecture(root, where));
        AUSPEX_TRY(check_features(root, where));
        LlamaConfig config;
        AUSPEX_TRY(read_sizes(root, where, config));
        AUSPEX_TRY(read_real(root, where, rms_eps_key, config));
        AUSPEX_TRY(read_rope(root, where, config));
        AUSPEX_TRY(read_bool(root, where, "tie_word_embeddings", config.tied_embedding));
        AUSPEX_TRY(read_special_ids(root, where, folder, config));
        AUSPEX_TRY(check_llama_config(config, where));
        return config;
    } catch (const std::bad_alloc&) {
        return Status(Code::out_of_host_memory, where + ": found no memory to read it");
    } catch (const std::exception& error) {
        return Status(Code::internal, where + ": " + in_quotes(error.what()));
    }
}

} // namespace auspex
