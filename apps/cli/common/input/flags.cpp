// How a flag is declared, and how a help looks.
#include "cli/common/input/flags.h"

namespace auspex::cli {

namespace {

constexpr size_t kLeft = 26, kRight = 80 - kLeft;

std::string columns(const std::string& left, std::string right) {
    std::string text = "  " + left;
    text += text.size() < kLeft ? std::string(kLeft - text.size(), ' ') : "\n" + std::string(kLeft, ' ');
    while (right.size() > kRight) {
        const size_t space = right.rfind(' ', kRight);
        if (space == std::string::npos) break;
        text += right.substr(0, space) + "\n" + std::string(kLeft, ' ');
        right.erase(0, space + 1);
    }
    return text + right + "\n";
}

} // namespace

const char* const kExitCodes = "Exit codes:\n"
                               "  0    success\n"
                               "  1    internal error, or the output could not be written\n"
                               "  2    a flag or its value is wrong\n"
                               "  3    a file or model is missing, damaged or unsupported, or the pair does\n"
                               "       not match\n"
                               "  4    the device is missing, unusable, lost or out of memory\n"
                               "  5    the prompt does not fit the context\n"
                               "  75   batch was stopped; the same command goes on\n"
                               "  130  interrupted by Ctrl-C\n";

std::string short_name(const std::string& flag) {
    return flag == kTwoLetterFlag.second ? kTwoLetterFlag.first : flag;
}

std::string Help::make_option(const CLI::Option* option, bool is_positional) const {
    if (is_positional) return columns(option->get_name(true, false), option->get_description());
    std::string names = option->get_name(false, true);
    if (names == kTwoLetterFlag.second) names = short_name(names) + "," + names;
    if (!option->get_option_text().empty()) names += " " + option->get_option_text();
    return columns(names, option->get_description());
}

std::string Help::make_subcommand(const CLI::App* command) const {
    return columns(command->get_name(), command->get_description());
}

std::string Help::make_usage(const CLI::App* app, std::string name) const {
    const bool is_root = app->get_parent() == nullptr;
    std::string usage = "\nUsage: auspex " + (is_root ? std::string("COMMAND") : name);
    for (const CLI::Option* positional :
         app->get_options([](const CLI::Option* option) { return option->get_positional(); }))
        usage += " " + positional->get_name(true, false);
    return usage + " [OPTIONS]\n";
}

void add_value(CLI::App& app, const std::string& names, const std::string& value_name, const std::string& help,
               Parse parse) {
    const std::string flag = short_name(names.substr(0, names.find(',')));
    const std::function<void(const std::string&)> callback = [flag, parse](const std::string& text) {
        parse(flag, text);
    };
    app.add_option_function(names, callback, help)
        ->option_text(value_name)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void add_text(CLI::App& app, const std::string& names, const std::string& value_name, const std::string& help,
              std::optional<std::string>& target) {
    add_value(app, names, value_name, help, [&target](const std::string&, const std::string& text) { target = text; });
}

void add_repeatable(CLI::App& app, const std::string& names, const std::string& value_name, const std::string& help,
                    Parse parse) {
    const std::string flag = short_name(names.substr(0, names.find(',')));
    const CLI::callback_t callback = [flag, parse](const CLI::results_t& texts) {
        for (const std::string& text : texts)
            parse(flag, text);
        return true;
    };
    app.add_option(names, callback, help)
        ->option_text(value_name)
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void begin_group(CLI::App& app, const char* heading) {
    app.option_defaults()->group(heading);
}

bool GivenFlags::has_none_but(const char* name) const {
    const auto given = app_.get_options([](const CLI::Option* option) { return option->count() > 0; });
    return std::all_of(given.begin(), given.end(), [&](const CLI::Option* option) { return option == app_.get_option(name); });
}

} // namespace auspex::cli
