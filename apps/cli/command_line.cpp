// The commands, and CLI11's parsing turned into options or one line that says what is wrong.
#include "cli/command_line.h"

#include "cli/common/input/shared_flags.h"

#include <algorithm>
#include <memory>

namespace auspex::cli {

namespace {

// Two spellings CLI11 does not take: -md, and an empty value after an equals sign.
std::vector<std::string> adapt(const std::vector<std::string>& arguments) {
    std::vector<std::string> adapted;
    for (size_t i = 1; i < arguments.size(); ++i) {
        const std::string& argument = arguments[i];
        if (argument == kTwoLetterFlag.first) {
            adapted.emplace_back(kTwoLetterFlag.second);
        } else if (argument.starts_with("--") && argument.ends_with('=') && argument.find('=') + 1 == argument.size()) {
            adapted.push_back(argument.substr(0, argument.size() - 1));
            adapted.emplace_back();
        } else {
            adapted.push_back(argument);
        }
    }
    std::reverse(adapted.begin(), adapted.end()); // the order CLI11 wants
    return adapted;
}

// -p for --prompt.
std::string first_name(const CLI::App& app, const std::string& flag) {
    const CLI::Option* option = app.get_option_no_throw(flag);
    return option != nullptr && !option->get_snames().empty() ? "-" + option->get_snames().front() : short_name(flag);
}

// "run, chat or bench"
std::string command_names(const CLI::App& root) {
    std::string names;
    const auto commands = root.get_subcommands([](const CLI::App*) { return true; });
    for (size_t i = 0; i < commands.size(); ++i)
        names += (i == 0 ? "" : i + 1 == commands.size() ? " or " : ", ") + commands[i]->get_name();
    return names;
}

// CLI11's exceptions as our one line.
[[noreturn]] void fail(const CLI::App& root, const CLI::ParseError& error) {
    const auto chosen = root.get_subcommands();
    const std::string name = chosen.empty() ? "auspex" : "auspex " + chosen.front()->get_name();
    const std::string advice = " (see " + name + " --help)";
    if (const auto unknown = root.remaining(true); !unknown.empty()) {
        if (chosen.empty() && !unknown.front().starts_with('-'))
            throw Failure(kExitUsage, unknown.front() + ": no such command; expected " + command_names(root));
        throw Failure(kExitUsage, short_name(unknown.front()) + ": no such argument" + advice);
    }
    const std::string what = error.what();
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr && !chosen.empty())
        throw Failure(kExitUsage, first_name(*chosen.front(), what.substr(0, what.find(": "))) +
                                      ": expected a value after it" + advice);
    throw Failure(kExitUsage, as_one_line(what) + advice);
}

// Every command's options, while it is not known which one is meant.
struct Parsed {
    Shared shared;
    RunOptions run;
    ChatOptions chat;
    InfoOptions info;
    BenchOptions bench;
    TokenizeOptions tokenize;
    ScoreOptions score;
    QuantizeOptions quantize;
    SelftestOptions selftest;
    TuneOptions tune;
    BatchOptions batch;
#if AUSPEX_HAS_SERVER
    ServeOptions serve;
#endif
};

void declare_commands(CLI::App& root, Parsed& parsed) {
    Shared& shared = parsed.shared;
    declare_run(*root.add_subcommand("run", "Complete a prompt; without any flag, tell a story with and without drafts"), parsed.run, shared);
    declare_chat(*root.add_subcommand("chat", "Talk with a model"), parsed.chat, shared);
    declare_batch(*root.add_subcommand("batch", "Answer a file of requests, many at once; goes on where it was stopped"),
                  parsed.batch, shared);
#if AUSPEX_HAS_SERVER
    declare_serve(*root.add_subcommand("serve", "Answer over HTTP, for clients of OpenAI's interface"), parsed.serve, shared);
#endif
    declare_bench(*root.add_subcommand("bench", "Compare speculative with plain decoding"), parsed.bench, shared);
    declare_info(*root.add_subcommand("info", "List the devices, describe a model"), parsed.info, shared);
    declare_tokenize(*root.add_subcommand("tokenize", "Text to token ids and back"), parsed.tokenize, shared);
    declare_score(*root.add_subcommand("score", "How probable a text is: log-probabilities, perplexity, logits"),
                  parsed.score, shared);
    declare_quantize(*root.add_subcommand("quantize", "Write a model as a smaller GGUF file"), parsed.quantize);
    declare_selftest(*root.add_subcommand("selftest", "Check on this device that drafts do not change the text"),
                     parsed.selftest, shared);
    declare_tune(*root.add_subcommand("tune", "Measure which sizes are fastest on this device, once"), parsed.tune, shared);
}

template <typename Options, typename... More> Command completed(Options& options, const More&... more) {
    complete(options, more...);
    return options;
}

Command chosen_command(const CLI::App& root, Parsed& parsed) {
    const Shared& shared = parsed.shared;
    const auto chosen = root.get_subcommands();
    const std::string name = chosen.empty() ? "" : chosen.front()->get_name();
    if (name == "run") return completed(parsed.run, shared, GivenFlags(*chosen.front()));
    if (name == "chat") return completed(parsed.chat, shared);
    if (name == "batch") return completed(parsed.batch, shared);
#if AUSPEX_HAS_SERVER
    if (name == "serve") return completed(parsed.serve, shared);
#endif
    if (name == "bench") return completed(parsed.bench, shared, GivenFlags(*chosen.front()));
    if (name == "info") return completed(parsed.info, shared);
    if (name == "tokenize") return completed(parsed.tokenize, shared);
    if (name == "score") return completed(parsed.score, shared);
    if (name == "quantize") return completed(parsed.quantize);
    if (name == "selftest") return completed(parsed.selftest, shared);
    if (name == "tune") return completed(parsed.tune, shared);
    return Notice{root.help()};
}

} // namespace

Command parse_command_line(std::vector<std::string> arguments) {
    Parsed parsed;
    CLI::App root("Auspex runs a Llama model faster by letting a small draft model propose\n"
                  "tokens that the target model checks; the text is exactly the target's.");
    root.formatter(std::make_shared<Help>());
    root.set_help_flag("-h,--help", "Print this help");
    bool show_version = false;
    root.add_flag("--version", show_version, "Print the version");
    root.require_subcommand(0, 1);
    root.footer(kExitCodes);
    declare_commands(root, parsed);

    try {
        root.parse(adapt(arguments));
    } catch (const CLI::CallForHelp&) {
        return Notice{root.help()};
    } catch (const CLI::ParseError& error) {
        fail(root, error);
    }
    if (show_version) {
        return Notice{"auspex " + format_api_version(auspex_version()) + "\n"};
    }
    return chosen_command(root, parsed);
}

} // namespace auspex::cli
