// The flags of every command: declared once, for parsing and for --help.
#include "cli/options.h"

#include "cli/terminal.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <utility>

namespace auspex::cli {

namespace {

// llama.cpp's flag of two letters, which CLI11 would read as -m d.
constexpr std::pair<const char*, const char*> kTwoLetterFlag = {"-md", "--model-draft"};

constexpr uint32_t kMaxTokens = 0x7fffffff;

constexpr const char* kExitCodes = "Exit codes:\n"
                                   "  0    success\n"
                                   "  1    internal error, or the output could not be written\n"
                                   "  2    a flag or its value is wrong\n"
                                   "  3    a file or model is missing, damaged or unsupported, or the pair does\n"
                                   "       not match\n"
                                   "  4    the device is missing, unusable, lost or out of memory\n"
                                   "  5    the prompt does not fit the context\n"
                                   "  130  interrupted by Ctrl-C\n";

constexpr const char* kRunExamples = "Examples:\n"
                                     "  auspex run\n"
                                     "  auspex run -p \"Once upon a time\" --temp 0.8 -s 7 --draft-len 6\n"
                                     "  auspex run -m llama-3b -md llama-1b -f prompt.txt -n 512\n"
                                     "  auspex run --samples 8 --temp 1 --json > completions.json\n\n";

constexpr const char* kBenchExamples =
    "A speed-up is predicted as (1 - a^(K+1)) / (1 - a) / (K c + v(K+1)) for the\n"
    "measured acceptance probability a, c = draft pass / target pass and v(n) = pass\n"
    "of n rows / pass of one (Leviathan et al. 2023, Theorem 3.8, extended by v), with\n"
    "what a round costs besides its passes added to both sides.\n\n"
    "Examples:\n"
    "  auspex bench\n"
    "  auspex bench --draft-len 2,4,8 -r 9 --json\n"
    "  auspex bench --shape d=1024,layers=12,ffn=2816,heads=16,kv_heads=4,vocab=32000\n\n";

std::string short_name(const std::string& flag) {
    return flag == kTwoLetterFlag.second ? kTwoLetterFlag.first : flag;
}

// Options in two columns, wrapped to 80.
class Help : public CLI::Formatter {
  public:
    std::string make_option(const CLI::Option* option, bool) const override {
        std::string names = option->get_name(false, true);
        if (names == kTwoLetterFlag.second) names = short_name(names) + "," + names;
        if (!option->get_option_text().empty()) names += " " + option->get_option_text();
        return columns(names, option->get_description());
    }

    std::string make_subcommand(const CLI::App* command) const override {
        return columns(command->get_name(), command->get_description());
    }

    std::string make_usage(const CLI::App* app, std::string name) const override {
        const bool is_root = app->get_parent() == nullptr;
        return "\nUsage: auspex " + (is_root ? std::string("COMMAND") : name) + " [OPTIONS]\n";
    }

    std::string make_footer(const CLI::App* app) const override { return app->get_footer(); }

  private:
    static constexpr size_t kLeft = 26, kRight = 80 - kLeft;

    static std::string columns(const std::string& left, std::string right) {
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
};

// Adds a flag with a value. `parse` gets (flag, text) and throws Failure when the text is wrong. The last one wins.
template <typename Parse>
CLI::Option* add_value(CLI::App& app, const std::string& names, const std::string& value_name, const std::string& help,
                       Parse parse) {
    const std::string first = names.substr(0, names.find(','));
    const std::string flag = short_name(first);
    const std::function<void(const std::string&)> callback = [flag, parse](const std::string& text) {
        parse(flag, text);
    };
    return app.add_option_function(names, callback, help)
        ->option_text(value_name)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

template <typename Number>
void add_number(CLI::App& app, const std::string& names, const std::string& help, Number& target, uint64_t lowest,
                uint64_t highest) {
    add_value(app, names, "N", help, [&target, lowest, highest](const std::string& flag, const std::string& text) {
        target = static_cast<Number>(parse_whole(flag, text, lowest, highest));
    });
}

void add_text(CLI::App& app, const std::string& names, const std::string& value_name, const std::string& help,
              std::optional<std::string>& target) {
    add_value(app, names, value_name, help, [&target](const std::string&, const std::string& text) { target = text; });
}

template <typename Value>
void add_choice(CLI::App& app, const std::string& names, const std::string& help, Value& target,
                std::vector<std::pair<std::string, Value>> choices) {
    std::string expected;
    for (const auto& [name, value] : choices)
        expected += (expected.empty() ? "" : "|") + name;
    add_value(
        app, names, expected, help, [&target, choices, expected](const std::string& flag, const std::string& text) {
            const auto found =
                std::find_if(choices.begin(), choices.end(), [&](const auto& choice) { return choice.first == text; });
            if (found == choices.end()) throw Failure(kExitUsage, flag + " " + text + ": expected " + expected);
            target = found->second;
        });
}

// What several commands take, before it is known which models are meant.
struct Shared {
    std::optional<std::string> target, draft;
    bool no_draft = false;
    std::optional<uint32_t> draft_len;
};

void add_models(CLI::App& app, Shared& shared, const std::string& otherwise) {
    add_text(app, "-m,--model", "DIR", "Target model, a Hugging Face folder; " + otherwise, shared.target);
    add_text(app, "--model-draft", "DIR", "Draft model; without it -m runs plainly", shared.draft);
}

void add_cache_type(CLI::App& app, auspex_cache_type& target) {
    add_choice<auspex_cache_type>(app, "--cache-type", "Precision of the K/V cache (f16)", target,
                                  {{"f16", AUSPEX_CACHE_F16}, {"f32", AUSPEX_CACHE_F32}, {"q8_0", AUSPEX_CACHE_Q8_0}});
}

void add_device(CLI::App& app, ModelOptions& models) {
    add_text(app, "--device", "N|NAME", "Device by number or by part of its name, as auspex info lists them",
             models.device);
    add_number(app, "-c,--ctx-size", "Tokens of context; 0: the model's, at most 4096 (0)", models.context, 0,
               kMaxTokens);
    add_cache_type(app, models.cache_type);
}

void add_temperature(CLI::App& app, double& target) {
    add_value(app, "--temp", "T", "Temperature; 0: greedy (0)",
              [&target](const std::string& flag, const std::string& text) { target = parse_temperature(flag, text); });
}

void declare_run(CLI::App& app, RunOptions& options, Shared& shared) {
    add_models(app, shared, "default: the bundled pair");
    add_text(app, "-p,--prompt", "TEXT",
             "Prompt. Without -p, -f and --tokens it is read from stdin when that is a pipe or file, else it is a "
             "built-in beginning of a story",
             options.prompt_text);
    add_text(app, "-f,--file", "FILE", "Prompt from a file (-: stdin); one line end at its end is dropped",
             options.prompt_file);
    add_value(app, "--tokens", "1,2,3", "Prompt as token ids, verbatim",
              [&options](const std::string& flag, const std::string& text) {
                  options.prompt_tokens = parse_whole_list(flag, text, 0, 0xffffffffu);
              });
    add_value(app, "-n,--n-predict", "N", "Tokens to generate; -1: until the context is full (256)",
              [&options](const std::string& flag, const std::string& text) {
                  options.n_predict =
                      text == "-1" ? 0u : static_cast<uint32_t>(parse_whole(flag, text, 1, kMaxTokens, "-1 or "));
              });
    add_temperature(app, options.temperature);
    add_value(app, "-s,--seed", "SEED", "Seed; -1: a random one, which the summary prints (-1)",
              [&options](const std::string& flag, const std::string& text) {
                  options.seed =
                      text == "-1" ? std::nullopt : std::optional(parse_whole(flag, text, 0, UINT64_MAX, "-1 or "));
              });
    add_value(app, "--draft-len", "K",
              format("Drafts per round, 0 to %u (%u)", AUSPEX_MAX_DRAFT_LEN, options.draft_len),
              [&shared](const std::string& flag, const std::string& text) {
                  shared.draft_len = static_cast<uint32_t>(parse_whole(flag, text, 0, AUSPEX_MAX_DRAFT_LEN));
              });
    app.add_flag("--no-draft", shared.no_draft, "Plain decoding, as --draft-len 0");
    add_number(app, "--samples", "Completions of the prompt, with seeds SEED, SEED+1, … (1)", options.n_samples, 1,
               100000);
    app.add_flag("--no-stop", options.ignore_eos, "Go on after an end token");
    add_device(app, options.models);
    app.add_flag("--json", options.json, "One JSON object on stdout instead of text and summary");
    add_choice<ColorMode>(
        app, "--color", "Colour tokens by how they came about; auto: on a terminal unless NO_COLOR is set (auto)",
        options.color, {{"auto", ColorMode::automatic}, {"always", ColorMode::always}, {"never", ColorMode::never}});
    app.footer(std::string(kRunExamples) + kExitCodes);
}

void declare_info(CLI::App& app, InfoOptions& options, Shared& shared) {
    add_text(app, "-m,--model", "DIR", "Describe this model too", shared.target);
    add_text(app, "--model-draft", "DIR", "Describe this draft model too", shared.draft);
    add_cache_type(app, options.cache_type);
    app.add_flag("--json", options.json, "One JSON object");
    app.footer(kExitCodes);
}

void declare_bench(CLI::App& app, BenchOptions& options, Shared& shared) {
    add_models(app, shared, "default: the bundled pair");
    const auto shape_into = [](std::optional<auspex_synthetic_shape>& target) {
        return [&target](const std::string& flag, const std::string& text) { target = parse_shape(flag, text); };
    };
    add_value(app, "--shape", "LIST",
              "Random weights instead of -m: d=,layers=,ffn=,heads=,vocab= and if wanted kv_heads=,head_dim=,ctx=, "
              "dtype=f16|bf16|f32,tied=0|1",
              shape_into(options.target_shape));
    add_value(app, "--draft-shape", "LIST", "The same for the draft", shape_into(options.draft_shape));
    add_value(app, "-p,--prompt", "TEXT", "Prompt (the beginning of a story; random tokens with --shape)",
              [&options](const std::string& flag, const std::string& text) {
                  if (text.empty()) throw Failure(kExitUsage, flag + ": the prompt is empty");
                  options.prompt = text;
              });
    add_number(app, "-n,--n-predict", "Tokens to generate each time (128)", options.n_predict, 1, kMaxTokens);
    add_number(app, "-r,--repetitions", "Repetitions after one warm-up (5)", options.n_repetitions, 1, 10000);
    add_value(app, "--draft-len", "LIST", "Draft lengths to compare with plain decoding (1,2,3,4,6,8)",
              [&options, &shared](const std::string& flag, const std::string& text) {
                  options.draft_lens = parse_whole_list(flag, text, 1, AUSPEX_MAX_DRAFT_LEN);
                  shared.draft_len = options.draft_lens.front();
              });
    app.add_flag("--no-draft", shared.no_draft, "Plain decoding only");
    add_temperature(app, options.temperature);
    add_number(app, "-s,--seed", "Seed of the first repetition (1)", options.seed, 0, UINT64_MAX);
    add_device(app, options.models);
    app.add_flag("--json", options.json, "One JSON object instead of the table");
    app.footer(std::string(kBenchExamples) + kExitCodes);
}

std::string bundled_model(const char* name) {
    const std::string folder = executable_folder() + "/../share/auspex/pair/" + name;
    if (!is_folder(folder))
        throw Failure(kExitFile, "the bundled model " + folder + " is missing: name a model with -m");
    return folder;
}

void check_folders(const Shared& shared) {
    for (const auto& [flag, folder] : {std::pair{"-m", &shared.target}, std::pair{"-md", &shared.draft}})
        if (*folder && (*folder)->empty()) throw Failure(kExitUsage, std::string(flag) + " \"\": expected a folder");
}

// Decides which folders are meant by -m, -md, --no-draft and --draft-len, for run and bench.
void choose_models(const Shared& shared, bool has_target_shape, bool has_draft_shape, ModelOptions& models) {
    if (shared.no_draft && shared.draft_len.value_or(0) > 0)
        throw Failure(kExitUsage, "--no-draft and --draft-len contradict each other: give one of them");
    if (has_target_shape && shared.target) throw Failure(kExitUsage, "--shape and -m exclude each other");
    if (has_draft_shape && shared.draft) throw Failure(kExitUsage, "--draft-shape and -md exclude each other");
    check_folders(shared);
    if (models.device && models.device->empty())
        throw Failure(kExitUsage, "--device \"\": expected the number or a part of the name of a device");

    const bool is_plain = shared.no_draft || shared.draft_len == 0u;
    if (!has_target_shape) models.target = shared.target ? *shared.target : bundled_model("target");
    if (is_plain || has_draft_shape) return;
    if (shared.draft)
        models.draft = *shared.draft;
    else if (!shared.target && !has_target_shape)
        models.draft = bundled_model("draft");
    else if (shared.draft_len)
        throw Failure(kExitUsage, format("--draft-len %u: expected a draft model too (-md DIR)", *shared.draft_len));
}

void complete(RunOptions& options, const Shared& shared) {
    const int n_prompts = int{options.prompt_text.has_value()} + int{options.prompt_file.has_value()} +
                          int{!options.prompt_tokens.empty()};
    if (n_prompts > 1) throw Failure(kExitUsage, "-p, -f and --tokens exclude each other: give one of them");
    if (options.prompt_text && options.prompt_text->empty()) throw Failure(kExitUsage, "-p: the prompt is empty");
    options.is_bundled_pair = !shared.target && !shared.draft;
    choose_models(shared, false, false, options.models);
    options.draft_len = options.models.draft.empty() ? 0 : shared.draft_len.value_or(options.draft_len);
}

void complete(BenchOptions& options, const Shared& shared, bool has_prompt) {
    if (options.target_shape && has_prompt)
        throw Failure(kExitUsage, "-p: random weights (--shape) have no tokenizer; leave the prompt out");
    choose_models(shared, options.target_shape.has_value(), options.draft_shape.has_value(), options.models);
    if (shared.no_draft) options.draft_shape.reset();
    if (options.models.draft.empty() && !options.draft_shape) options.draft_lens.clear();
}

// Two spellings CLI11 does not take: -md, and an empty value behind an equals sign.
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

// CLI11's exceptions as our one line.
[[noreturn]] void fail(const CLI::App& root, const CLI::ParseError& error) {
    const auto chosen = root.get_subcommands();
    const std::string name = chosen.empty() ? "auspex" : "auspex " + chosen.front()->get_name();
    const std::string advice = " (see " + name + " --help)";
    if (const auto unknown = root.remaining(true); !unknown.empty()) {
        if (chosen.empty() && !unknown.front().starts_with('-'))
            throw Failure(kExitUsage, unknown.front() + ": no such command; expected run, info or bench");
        throw Failure(kExitUsage, unknown.front() + ": no such argument" + advice);
    }
    const std::string what = error.what();
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr && !chosen.empty())
        throw Failure(kExitUsage, first_name(*chosen.front(), what.substr(0, what.find(": "))) +
                                      ": expected a value behind it" + advice);
    throw Failure(kExitUsage, as_one_line(what) + advice);
}

} // namespace

Command parse_command_line(std::vector<std::string> arguments) {
    RunOptions run_options;
    InfoOptions info_options;
    BenchOptions bench_options;
    Shared shared;

    CLI::App root("Auspex runs a Llama model faster by letting a small draft model propose\n"
                  "tokens that the target model checks; the text is exactly the target's.");
    root.formatter(std::make_shared<Help>());
    root.set_help_flag("-h,--help", "Print this help");
    bool show_version = false;
    root.add_flag("--version", show_version, "Print the version");
    root.require_subcommand(0, 1);
    root.footer(kExitCodes);
    CLI::App* run_app = root.add_subcommand("run", "Complete a prompt; without any flag, tell a story");
    CLI::App* info_app = root.add_subcommand("info", "List the devices, describe a model");
    CLI::App* bench_app = root.add_subcommand("bench", "Compare speculative with plain decoding");
    declare_run(*run_app, run_options, shared);
    declare_info(*info_app, info_options, shared);
    declare_bench(*bench_app, bench_options, shared);

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
    if (*run_app) {
        complete(run_options, shared);
        return run_options;
    }
    if (*info_app) {
        check_folders(shared);
        info_options.target = shared.target.value_or("");
        info_options.draft = shared.draft.value_or("");
        return info_options;
    }
    if (*bench_app) {
        complete(bench_options, shared, bench_app->count("--prompt") > 0);
        return bench_options;
    }
    return Notice{root.help()};
}

} // namespace auspex::cli
