// Flags of run.
#include "cli/common/input/shared_flags.h"
#include "cli/run/options.h"

namespace auspex::cli {

namespace {

constexpr const char* kRunExamples = "Examples:\n"
                                     "  auspex run\n"
                                     "  auspex run --chat -p \"Tell me a story about a fox named Ruby.\"\n"
                                     "  auspex run -p \"Once upon a time\" --temp 0.8 -s 7 --draft-len 6\n"
                                     "  auspex run -m llama-3b -md llama-1b -f prompt.txt -n 512\n"
                                     "  auspex run -m llama-3b -f code.txt --drafter ngram --stop \"###\"\n"
                                     "  auspex run -m llama-3b.gguf --chat -p \"Who was Apollo?\" --quant q8_0\n"
                                     "  auspex run --samples 8 --temp 1 --json > completions.json\n\n";

} // namespace

void declare_run(CLI::App& app, RunOptions& options, Shared& shared) {
    begin_group(app, "Models and device");
    add_models(app, shared, options.models, kBundledPair);
    add_device(app, options.models);
    begin_group(app, "Prompt");
    add_prompt(app, options.prompt,
               "Prompt. Without -p, -f and --tokens it is read from stdin when that is a pipe or file, else it is a "
               "built-in beginning of a story. Without any flag but --json that is told again without drafts, to compare");
    app.add_flag("--chat", options.is_chat, "The prompt is what a user says: lay it out as the model's chat template");
    add_chat_format(app, options.format);
    add_sampling(app, options.sampling);
    add_number(app, "--samples", "Completions of the prompt, with seeds SEED, SEED+1, … (1)", options.n_samples, 1,
               100000);
    app.add_flag("--no-stop", options.ignore_eos, "Go on after an end token");
    add_speculation(app, options.sampling, shared);
    begin_group(app, "Output");
    add_text(app, "--trace", "FILE", "Write what GPU and host did when, for ui.perfetto.dev", options.trace);
    app.add_flag("--json", options.json, "One JSON object on stdout instead of text and summary");
    add_color(app, options.color);
    end_groups(app);
    app.footer(std::string(kRunExamples) + kExitCodes);
}

void complete(RunOptions& options, const Shared& shared, const GivenFlags& given) {
    options.may_demonstrate = given.has_none_but("--json");
    check_prompt(options.prompt);
    const ChatFormat& format = options.format;
    if (!options.is_chat && (format.system || !format.template_name.empty() || format.date))
        throw Failure(kExitUsage, "--system, --chat-template and --date: expected --chat too");
    if (options.is_chat && !options.prompt.tokens.empty())
        throw Failure(kExitUsage, "--tokens and --chat exclude each other: token ids are used verbatim");
    choose_models(shared, settle_drafting(options.sampling, shared.no_draft), false, false, options.models);
}

} // namespace auspex::cli
