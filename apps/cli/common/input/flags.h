// How flags are declared: once, for parsing and for --help. Which flags a command has is said in its folder's flags.cpp.
#pragma once

#include "cli/common/input/values.h"

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

// As add_value, but every one counts. A value that begins with - stands after an equals sign.
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

} // namespace auspex::cli
