// What several commands are asked: models, where a text comes from, how a conversation is laid out.
#pragma once

#include "cli/common/input/sampling.h"

#include <auspex/auspex_tools.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App; // CLI11's
}

namespace auspex::cli {

enum class ColorMode { automatic, always, never };

inline constexpr const char* kBuiltInPrompt = "Once upon a time there was a curious fox named Ruby.";

// Which models run where. Shared by all commands that run one.
struct ModelOptions {
    std::string target; // GGUF file or folder; empty: a synthetic shape instead
    std::string draft;  // GGUF file or folder; empty: none
    auspex_weight_type target_weights = AUSPEX_WEIGHTS_AS_IS, draft_weights = AUSPEX_WEIGHTS_AS_IS;
    std::optional<auspex_self_draft> self_quant; // asked for
    auspex_self_draft self_draft = AUSPEX_SELF_DRAFT_NONE; // instead of a draft model
    bool may_self_draft = false; // where nobody asked: if it pays on the device (engine/self_draft.h)
    std::string draft_needed_by; // a flag that cannot do without it; empty: none
    std::optional<std::string> device;
    uint32_t context = 0; // tokens; 0: the smaller of the target's and 4096
    auspex_cache_type cache_type = AUSPEX_CACHE_F16;
    bool is_bundled_pair = false; // neither -m nor -md was given
};

// Random weights instead of files.
struct ShapeOptions {
    std::optional<auspex_synthetic_shape> target, draft;
    std::string target_text, draft_text; // as they were given; "": a file, or none
    bool any() const { return target || draft; }
};

// Where a text comes from: at most one of these; none of them: stdin, or what the command puts in its place.
struct PromptOptions {
    std::optional<std::string> text;
    std::optional<std::string> file; // "-": stdin
    std::vector<uint32_t> tokens;    // empty: text
};

struct ChatFormat {
    std::optional<std::string> system; // absent: the model's own default, which often is none
    std::string template_name;         // empty: the one the model's own template is recognised as
    std::optional<std::string> date;   // as llama3 writes it; absent: today
};

struct Shared;    // what of several commands' flags is not yet an option (shared_flags.h)
class GivenFlags; // which flags were given

} // namespace auspex::cli
