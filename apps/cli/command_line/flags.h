// How flags are declared: once, for parsing and for --help. Which flags a command has is said in the files beside this.
#pragma once

#include "cli/options.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace auspex::cli {

// llama.cpp's flag of two letters, which CLI11 would read as -m d.
inline constexpr std::pair<const char*, const char*> kTwoLetterFlag = {"-md", "--model-draft"};

inline constexpr uint32_t kMaxTokens = 0x7fffffff;

extern const char* const kExitCodes; // for the end of every help

std::string short_name(const std::string& flag); // -md for --model-draft

// Options in two columns, wrapped to 80.
class Help : public CLI::Formatter {
  public:
    std::string make_option(const CLI::Option* option, bool is_positional) const override;
    std::string make_subcommand(const CLI::App* command) const override;
    std::string make_usage(const CLI::App* app, std::string name) const override;
    std::string make_footer(const CLI::App* app) const override { return app->get_footer(); }
};

// `parse` gets (flag, text) and throws Failure when the text is wrong. The last one wins.
using Parse = std::function<void(const std::string& flag, const std::string& text)>;
void add_value(CLI::App& app, const std::string& names, const std::string& value_name, const std::string& help,
               Parse parse);
void add_text(CLI::App& app, const std::string& names, const std::string& value_name, const std::string& help,
              std::optional<std::string>& target);

template <typename Number>
void add_number(CLI::App& app, const std::string& names, const std::string& help, Number& target, uint64_t lowest,
                uint64_t highest) {
    add_value(app, names, "N", help, [&target, lowest, highest](const std::string& flag, const std::string& text) {
        target = static_cast<Number>(parse_whole(flag, text, lowest, highest));
    });
}

template <typename Value>
void add_choice(CLI::App& app, const std::string& names, const std::string& value_name, const std::string& help,
                Value& target, std::vector<std::pair<std::string, Value>> choices) {
    std::string expected;
    for (const auto& [name, value] : choices)
        expected += (expected.empty() ? "" : "|") + name;
    add_value(app, names, value_name.empty() ? expected : value_name, help,
              [&target, choices, expected](const std::string& flag, const std::string& text) {
                  const auto found = std::find_if(choices.begin(), choices.end(), // "Q8_0" is q8_0
                                                  [&](const auto& choice) { return choice.first == lower_case(text); });
                  if (found == choices.end()) throw Failure(kExitUsage, flag + " " + text + ": expected " + expected);
                  target = found->second;
              });
}

// As add_value, but every one counts. A value that begins with - stands behind an equals sign.
void add_repeatable(CLI::App& app, const std::string& names, const std::string& value_name, const std::string& help,
                    Parse parse);

// Flags that are declared from here on stand under this heading of the help.
void begin_group(CLI::App& app, const char* heading);

// Whether a flag, by its long name, is on the command line.
class GivenFlags {
  public:
    explicit GivenFlags(const CLI::App& app) : app_(app) {}
    bool has(const char* name) const { return app_.count(name) > 0; }
    bool has_none_but(const char* name) const; // whether that is there, too, or not

  private:
    const CLI::App& app_;
};

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
};
// Decides which models are meant by -m and -md.
void choose_models(const Shared& shared, const DraftNeed& need, bool has_target_shape, bool has_draft_shape,
                   ModelOptions& models);

// The commands that generate text (generation.cpp) …
void declare_run(CLI::App& app, RunOptions& options, Shared& shared);
void declare_chat(CLI::App& app, ChatOptions& options, Shared& shared);
void declare_bench(CLI::App& app, BenchOptions& options, Shared& shared);
void complete(RunOptions& options, const Shared& shared, const GivenFlags& given);
void complete(ChatOptions& options, const Shared& shared);
void complete(BenchOptions& options, const Shared& shared, const GivenFlags& given);
// … and those that look at models and text (tools.cpp).
void declare_info(CLI::App& app, InfoOptions& options, Shared& shared);
void declare_tokenize(CLI::App& app, TokenizeOptions& options, Shared& shared);
void declare_score(CLI::App& app, ScoreOptions& options, Shared& shared);
void declare_quantize(CLI::App& app, QuantizeOptions& options);
void declare_selftest(CLI::App& app, SelftestOptions& options, Shared& shared); // (selftest.cpp)
void declare_tune(CLI::App& app, TuneOptions& options, Shared& shared); // (tune.cpp)
void complete(InfoOptions& options, const Shared& shared);
void complete(TokenizeOptions& options, const Shared& shared);
void complete(ScoreOptions& options, const Shared& shared);
void complete(const QuantizeOptions& options);
void complete(SelftestOptions& options, const Shared& shared);
void complete(TuneOptions& options, const Shared& shared);

} // namespace auspex::cli
