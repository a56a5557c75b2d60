// Flags of the commands that generate text: run, chat, bench.
#include "cli/command_line/flags.h"

namespace auspex::cli {

namespace {

constexpr const char* kRunExamples = "Examples:\n"
                                     "  auspex run\n"
                                     "  auspex run -p \"Once upon a time\" --temp 0.8 -s 7 --draft-len 6\n"
                                     "  auspex run -m llama-3b -md llama-1b -f prompt.txt -n 512\n"
                                     "  auspex run -m llama-3b.gguf --chat -p \"Who was Apollo?\" --quant q8_0\n"
                                     "  auspex run --samples 8 --temp 1 --json > completions.json\n\n";

constexpr const char* kChatNotes =
    "Each line is one turn; one that ends in \\ goes on in the next. Answers go to\n"
    "stdout, everything else to stderr. What is typed instead of a turn:\n"
    "  /help                   these words\n"
    "  /reset                  begin a new conversation\n"
    "  /stats                  what the conversation took so far\n"
    "  /set KEY VALUE          temp, seed, n or draft-len from the next turn on; system\n"
    "                          before the first turn\n"
    "  /exit                   leave, as Ctrl-D\n"
    "Ctrl-C stops the answer; at the prompt, or twice within two seconds, it leaves.\n\n"
    "Examples:\n"
    "  auspex chat -m llama-3b-instruct -md llama-1b-instruct --draft-quant q4_0\n"
    "  auspex chat -m model.gguf --system \"Answer briefly.\" --temp 0.7\n"
    "  echo \"Who was Apollo?\" | auspex chat -m model.gguf\n\n";

constexpr const char* kBenchExamples =
    "A speed-up is predicted as (1 - a^(K+1)) / (1 - a) / (K c + v(K+1)) for the\n"
    "measured acceptance probability a, c = draft pass / target pass and v(n) = pass\n"
    "of n rows / pass of one (Leviathan et al. 2023, Theorem 3.8, extended by v), with\n"
    "what a round costs besides its passes added to both sides.\n\n"
    "Examples:\n"
    "  auspex bench\n"
    "  auspex bench --draft-len 2,4,8 -r 9 --json\n"
    "  auspex bench --shape d=1024,layers=12,ffn=2816,heads=16,kv_heads=4,vocab=32000\n\n";

} // namespace

void declare_run(CLI::App& app, RunOptions& options, Shared& shared) {
    add_models(app, shared, options.models, kBundledPair);
    add_prompt(app, options.prompt,
               "Prompt. Without -p, -f and --tokens it is read from stdin when that is a pipe or file, else it is a "
               "built-in beginning of a story");
    add_sampling(app, options.sampling, shared);
    add_number(app, "--samples", "Completions of the prompt, with seeds SEED, SEED+1, … (1)", options.n_samples, 1,
               100000);
    app.add_flag("--no-stop", options.ignore_eos, "Go on after an end token");
    app.add_flag("--chat", options.is_chat, "The prompt is what a user says: lay it out as the model's chat template");
    add_chat_format(app, options.format);
    add_text(app, "--trace", "FILE", "Write what GPU and host did when, for ui.perfetto.dev", options.trace);
    add_device(app, options.models);
    app.add_flag("--json", options.json, "One JSON object on stdout instead of text and summary");
    add_color(app, options.color);
    app.footer(std::string(kRunExamples) + kExitCodes);
}

void declare_chat(CLI::App& app, ChatOptions& options, Shared& shared) {
    add_models(app, shared, options.models, kBundledPair);
    add_chat_format(app, options.format);
    add_sampling(app, options.sampling, shared);
    add_device(app, options.models);
    add_color(app, options.color);
    app.footer(std::string(kChatNotes) + kExitCodes);
}

void declare_bench(CLI::App& app, BenchOptions& options, Shared& shared) {
    add_models(app, shared, options.models, kBundledPair);
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

void complete(RunOptions& options, const Shared& shared) {
    check_prompt(options.prompt);
    const ChatFormat& format = options.format;
    if (!options.is_chat && (format.system || !format.template_name.empty() || format.date))
        throw Failure(kExitUsage, "--system, --chat-template and --date: expected --chat too");
    if (options.is_chat && !options.prompt.tokens.empty())
        throw Failure(kExitUsage, "--tokens and --chat exclude each other: token ids are used verbatim");
    choose_models(shared, false, false, options.models);
    options.sampling.draft_len =
        options.models.draft.empty() ? 0 : shared.draft_len.value_or(options.sampling.draft_len);
}

void complete(ChatOptions& options, const Shared& shared) {
    choose_models(shared, false, false, options.models);
    options.sampling.draft_len =
        options.models.draft.empty() ? 0 : shared.draft_len.value_or(options.sampling.draft_len);
}

void complete(BenchOptions& options, const Shared& shared, bool has_prompt) {
    if (options.target_shape && has_prompt)
        throw Failure(kExitUsage, "-p: random weights (--shape) have no tokenizer; leave the prompt out");
    choose_models(shared, options.target_shape.has_value(), options.draft_shape.has_value(), options.models);
    if (shared.no_draft) options.draft_shape.reset();
    if (options.models.draft.empty() && !options.draft_shape) options.draft_lens.clear();
}

} // namespace auspex::cli
