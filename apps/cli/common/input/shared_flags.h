// The flags that several commands have, and what they mean together.
#pragma once

#include "cli/common/input/flags.h"
#include "cli/common/input/options.h"

namespace auspex::cli {

// What several commands take, before it is known which models are meant.
struct Shared {
    std::optional<std::string> target, draft;
    bool no_draft = false;
};

inline constexpr const char* kBundledPair = "default: the bundled pair";
inline constexpr const char* kBundledTarget = "default: the bundled target";

void add_target(CLI::App& app, Shared& shared, const std::string& otherwise);
void add_draft(CLI::App& app, Shared& shared, const std::string& help);
void add_models(CLI::App& app, Shared& shared, ModelOptions& models, const std::string& otherwise); // and --quant
void add_quant(CLI::App& app, auspex_weight_type& target);
void add_cache_type(CLI::App& app, auspex_cache_type& target);
void add_context(CLI::App& app, ModelOptions& models);
void add_device_name(CLI::App& app, ModelOptions& models);
void add_device(CLI::App& app, ModelOptions& models); // and context, and cache type
void add_prompt(CLI::App& app, PromptOptions& prompt, const std::string& help);
void add_length_and_seed(CLI::App& app, SamplingOptions& sampling);
// The settings of the table, but those of `except`.
void add_settings(CLI::App& app, SamplingOptions& sampling, SettingGroup group, std::vector<std::string> except = {});
void add_biases(CLI::App& app, SamplingOptions& sampling);
void add_stop_texts(CLI::App& app, SamplingOptions& sampling);
void add_chat_layout(CLI::App& app, std::string& template_name);
void add_chat_format(CLI::App& app, ChatFormat& format);
void add_color(CLI::App& app, ColorMode& target);

std::string bundled_model(const char* name);
void check_paths(const Shared& shared);
void check_prompt(const PromptOptions& prompt);
void check_device(const ModelOptions& models);
// What of a command needs a draft model, for a pair of flags or shapes.
struct DraftNeed {
    bool may_use = true;   // false: none is loaded
    std::string needed_by; // a flag that cannot do without, "" for none
    bool by_self = false;    // the target's own weights draft instead
    bool by_either = false;  // needed_by can do with these, too
};
// Decides which models are meant by -m and -md.
void choose_models(const Shared& shared, const DraftNeed& need, bool has_target_shape, bool has_draft_shape,
                   ModelOptions& models);

// What the commands that generate text share.
bool needs_model(auspex_drafter drafter); // and nothing else will do
bool needs_self(auspex_drafter drafter);  // the target's own weights, and nothing else will do
bool needs_either(auspex_drafter drafter);
// What the flags about drafts mean together. --no-draft, --drafter none and --draft-len 0 are one.
DraftNeed settle_drafting(SamplingOptions& sampling, bool no_draft);
// How drafts come about; what they may cost.
void add_speculation(CLI::App& app, SamplingOptions& sampling, Shared& shared);
void add_sampling(CLI::App& app, SamplingOptions& sampling);
// -h was declared first, but is read last.
void end_groups(CLI::App& app);

} // namespace auspex::cli
