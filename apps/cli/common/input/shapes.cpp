// Shapes of random models: key by key, or by the name of a published one.
#include "cli/common/input/shapes.h"

#include "cli/common/input/flags.h"

#include <algorithm>
#include <array>

namespace auspex::cli {

namespace {

struct Named {
    std::string_view name;
    uint32_t hidden_size, n_layers, ffn_size, n_heads, n_kv_heads, head_dim, vocab_size, max_position;
};
constexpr std::array kPublished = {
    Named{"llama-3.2-1b", 2048, 16, 8192, 32, 8, 64, 128256, 131072},
    Named{"llama-3.2-3b", 3072, 28, 8192, 24, 8, 128, 128256, 131072},
};

// By auspex_synthetic_dtype.
constexpr std::array<std::string_view, 13> kDtypes = {"f32",  "f16",  "bf16", "q8_0", "q4_0", "q4_1", "q5_0",
                                                      "q5_1", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k"};

[[noreturn]] void fail(const std::string& flag, const std::string& found, const std::string& expected) {
    throw Failure(kExitUsage, flag + " " + (found.empty() ? "\"\"" : found) + ": expected " + expected);
}

// False: no published model has this name.
bool take_published(const std::string& name, auspex_synthetic_shape& shape) {
    const auto found = std::find_if(kPublished.begin(), kPublished.end(), [&](const Named& n) { return n.name == name; });
    if (found == kPublished.end()) return false;
    shape.hidden_size = found->hidden_size;
    shape.n_layers = found->n_layers;
    shape.ffn_size = found->ffn_size;
    shape.n_heads = found->n_heads;
    shape.n_kv_heads = found->n_kv_heads;
    shape.head_dim = found->head_dim;
    shape.vocab_size = found->vocab_size;
    shape.max_position = found->max_position;
    shape.tied_embedding = 1;
    shape.dtype = AUSPEX_SYNTHETIC_BF16;
    return true;
}

auspex_synthetic_shape parse_shape(const std::string& flag, const std::string& text) {
    auspex_synthetic_shape shape{};
    shape.max_position = 4096;
    shape.dtype = AUSPEX_SYNTHETIC_F16;
    shape.seed = 1;
    shape.scale = 0.02f;
    shape.generate_on_device = 1;

    struct Dimension {
        const char* name;
        uint32_t* value;
        uint32_t highest;
    };
    const std::array dimensions = {
        Dimension{"d", &shape.hidden_size, 1u << 16},    Dimension{"layers", &shape.n_layers, 1024},
        Dimension{"L", &shape.n_layers, 1024},           Dimension{"ffn", &shape.ffn_size, 1u << 18},
        Dimension{"heads", &shape.n_heads, 1024},        Dimension{"kv_heads", &shape.n_kv_heads, 1024},
        Dimension{"kv", &shape.n_kv_heads, 1024},        Dimension{"head_dim", &shape.head_dim, 1024},
        Dimension{"vocab", &shape.vocab_size, 1u << 22}, Dimension{"ctx", &shape.max_position, 1u << 24},
        Dimension{"tied", &shape.tied_embedding, 1},
    };

    bool is_first = true;
    for (const std::string& part : split(text, ',')) {
        const bool may_be_name = is_first;
        is_first = false;
        if (may_be_name && take_published(part, shape)) continue;
        const size_t equals = part.find('=');
        const std::string name = part.substr(0, equals);
        const std::string value = equals == std::string::npos ? "" : part.substr(equals + 1);
        if (name == "dtype") {
            const auto found = std::find(kDtypes.begin(), kDtypes.end(), value);
            if (found == kDtypes.end())
                fail(flag, part, "dtype=f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q2_k, q3_k, q4_k, q5_k or q6_k");
            shape.dtype = static_cast<uint32_t>(found - kDtypes.begin());
            continue;
        }
        if (name == "on") {
            if (value != "device" && value != "host") fail(flag, part, "on=device or host");
            shape.generate_on_device = value == "device" ? 1 : 0;
            continue;
        }
        const auto dimension = std::find_if(dimensions.begin(), dimensions.end(),
                                            [&](const Dimension& candidate) { return candidate.name == name; });
        if (dimension == dimensions.end())
            fail(flag, part,
                 std::string(may_be_name ? "llama-3.2-1b, llama-3.2-3b, " : "") +
                     "d=, layers=, ffn=, heads=, kv_heads=, head_dim=, vocab=, ctx=, dtype=, tied= or on=");
        const uint32_t lowest = name == "tied" ? 0 : 1;
        *dimension->value = static_cast<uint32_t>(
            parse_whole(flag + " " + name + "=", value, lowest, dimension->highest));
    }
    for (const char* needed : {"d", "layers", "ffn", "heads", "vocab"})
        for (const Dimension& dimension : dimensions)
            if (std::string_view(dimension.name) == needed && *dimension.value == 0)
                fail(flag, text, std::string(needed) + "=… among them");
    if (shape.n_kv_heads == 0) shape.n_kv_heads = shape.n_heads;
    if (shape.head_dim == 0) shape.head_dim = shape.hidden_size / shape.n_heads;
    if (shape.n_heads % shape.n_kv_heads != 0) fail(flag, text, "heads to be a multiple of kv_heads");
    if (shape.head_dim != 32 && shape.head_dim != 64 && shape.head_dim != 128)
        fail(flag, text, format("head_dim 32, 64 or 128 (it is %u)", shape.head_dim));
    if (shape.generate_on_device == 0 && shape.dtype > AUSPEX_SYNTHETIC_BF16)
        fail(flag, text, "dtype=f32, f16 or bf16 with on=host (--quant converts those)");
    return shape;
}

void add_shape(CLI::App& app, const char* name, const std::string& help, std::optional<auspex_synthetic_shape>& shape, std::string& as_given) {
    add_value(app, name, "LIST", help, [&shape, &as_given](const std::string& flag, const std::string& text) {
        shape = parse_shape(flag, text);
        as_given = text;
    });
}

} // namespace

void add_shapes(CLI::App& app, ShapeOptions& shapes) {
    add_shape(app, "--shape",
              "Random weights instead of -m, made on the device: llama-3.2-1b or llama-3.2-3b, or "
              "d=,L=,ffn=,heads=,vocab= and if wanted kv_heads=,head_dim=,ctx=,tied=0|1,dtype=f16 (or bf16, f32, q8_0, "
              "q4_0, q4_k …),on=device|host",
              shapes.target, shapes.target_text);
    add_shape(app, "--draft-shape", "The same for the draft", shapes.draft, shapes.draft_text);
}

auspex_synthetic_models synthetic_models(const ShapeOptions& shapes) {
    auspex_synthetic_models models;
    auspex_synthetic_models_init(&models, sizeof models);
    if (shapes.target) models.target = *shapes.target;
    if (shapes.draft) {
        models.draft = *shapes.draft;
        models.draft.seed += 1; // unrelated to a target of the same shape
    }
    return models;
}

} // namespace auspex::cli
