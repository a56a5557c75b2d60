// Flags of the commands that generate text: run, chat, bench.
#include "cli/command_line/flags.h"

#include <algorithm>

namespace auspex::cli {

namespace {

constexpr const char* kRunExamples = "Examples:\n"
                                     "  auspex run\n"
                                     "  auspex run -p \"Once upon a time\" --temp 0.8 -s 7 --draft-len 6\n"
                                     "  auspex run -m llama-3b -md llama-1b -f prompt.txt -n 512\n"
                                     "  auspex run -m llama-3b -f code.txt --drafter ngram --stop \"###\"\n"
                                     "  auspex run -m llama-3b.gguf --chat -p \"Who was Apollo?\" --quant q8_0\n"
                                     "  auspex run --samples 8 --temp 1 --json > completions.json\n\n";

constexpr const char* kChatNotes =
    "Each line is one turn; one that ends in \\ goes on in the next. Answers go to\n"
    "stdout, everything else to stderr. What is typed instead of a turn:\n"
    "  /help                   these words\n"
    "  /reset                  begin a new conversation\n"
    "  /stats                  what the conversation took so far\n"
    "  /set KEY VALUE          n, seed, stop or a flag without its dashes, as temp,\n"
    "                          from the next turn on; system before the first\n"
    "  /exit                   leave, as Ctrl-D\n"
    "Ctrl-C stops the answer; at the prompt, or twice within two seconds, it leaves.\n\n"
    "Examples:\n"
    "  auspex chat -m llama-3b-instruct -md llama-1b-instruct --draft-quant q4_0\n"
    "  auspex chat -m model.gguf --system \"Answer briefly.\" --temp 0.7\n"
    "  echo \"Who was Apollo?\" | auspex chat -m model.gguf\n\n";

constexpr const char* kBenchExamples =
    "Rows: plain decoding, each drafter with each draft length, and auto, which chooses\n"
    "for itself. A model's speed-up is predicted as (1 - a^(K+1)) / (1 - a) /\n"
    "(K c + v(K+1)) for the measured acceptance probability a, c = draft pass / target\n"
    "pass and v(n) = pass of n rows / pass of one (Leviathan et al. 2023, Theorem 3.8,\n"
    "extended by v), with what a round costs besides its passes added to both sides.\n\n"
    "Examples:\n"
    "  auspex bench\n"
    "  auspex bench --draft-len 2,4,8 -r 9 --json\n"
    "  auspex bench --drafter model,ngram,hybrid,auto --draft-len 4\n"
    "  auspex bench --tables --plot speedup.svg > tables.md\n"
    "  auspex bench --shape d=1024,layers=12,ffn=2816,heads=16,kv_heads=4,vocab=32000\n\n";

bool is_models(auspex_drafter drafter) {
    return drafter == AUSPEX_DRAFTER_MODEL || drafter == AUSPEX_DRAFTER_HYBRID;
}

// What the flags about drafts mean together. --no-draft, --drafter none and --draft-len 0 are one.
DraftNeed settle_drafting(SamplingOptions& sampling, bool no_draft) {
    const auto contradict = [](const std::string& one, const std::string& other) {
        return Failure(kExitUsage, one + " and " + other + " contradict each other: give one of them");
    };
    const std::string drafter = std::string("--drafter ") + drafter_name(sampling.drafter);
    const std::string draft_len = "--draft-len " + draft_len_name(sampling.draft_len);
    const bool has_drafter = sampling.drafter != AUSPEX_DRAFTER_AUTO && sampling.drafter != AUSPEX_DRAFTER_NONE;
    const bool has_draft_len = sampling.draft_len != AUSPEX_DRAFT_LEN_AUTO && sampling.draft_len != 0;
    if (no_draft && has_draft_len) throw contradict("--no-draft", draft_len);
    if (no_draft && has_drafter) throw contradict("--no-draft", drafter);
    if (sampling.drafter == AUSPEX_DRAFTER_NONE && has_draft_len) throw contradict(drafter, draft_len);
    if (sampling.draft_len == 0 && has_drafter) throw contradict(draft_len, drafter);
    check_together(sampling);
    if (no_draft) sampling.draft_len = 0;
    return {.may_use = !sampling.is_plain() && (is_models(sampling.drafter) || sampling.drafter == AUSPEX_DRAFTER_AUTO),
            .needed_by = is_models(sampling.drafter) ? drafter : ""};
}

// How drafts come about; what they may cost.
void add_speculation(CLI::App& app, SamplingOptions& sampling, Shared& shared) {
    begin_group(app, "Speculation");
    add_settings(app, sampling, SettingGroup::speculation);
    app.add_flag("--no-draft", shared.no_draft, "Plain decoding, as --drafter none and as --draft-len 0");
}

void add_sampling(CLI::App& app, SamplingOptions& sampling) {
    begin_group(app, "Sampling");
    add_length_and_seed(app, sampling);
    add_settings(app, sampling, SettingGroup::sampling);
    add_biases(app, sampling);
    add_stop_texts(app, sampling);
}

// -h was declared first, but is read last.
void end_groups(CLI::App& app) {
    app.set_help_flag("-h,--help", "Print this help");
}

} // namespace

void declare_run(CLI::App& app, RunOptions& options, Shared& shared) {
    begin_group(app, "Models and device");
    add_models(app, shared, options.models, kBundledPair);
    add_device(app, options.models);
    begin_group(app, "Prompt");
    add_prompt(app, options.prompt,
               "Prompt. Without -p, -f and --tokens it is read from stdin when that is a pipe or file, else it is a "
               "built-in beginning of a story");
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

void declare_chat(CLI::App& app, ChatOptions& options, Shared& shared) {
    begin_group(app, "Models and device");
    add_models(app, shared, options.models, kBundledPair);
    add_device(app, options.models);
    begin_group(app, "Conversation");
    add_chat_format(app, options.format);
    add_sampling(app, options.sampling);
    add_speculation(app, options.sampling, shared);
    begin_group(app, "Output");
    add_color(app, options.color);
    end_groups(app);
    app.footer(std::string(kChatNotes) + kExitCodes);
}

void declare_bench(CLI::App& app, BenchOptions& options, Shared& shared) {
    begin_group(app, "Models and device");
    add_models(app, shared, options.models, kBundledPair);
    const auto shape_into = [](std::optional<auspex_synthetic_shape>& target) {
        return [&target](const std::string& flag, const std::string& text) { target = parse_shape(flag, text); };
    };
    add_value(app, "--shape", "LIST",
              "Random weights instead of -m: d=,layers=,ffn=,heads=,vocab= and if wanted kv_heads=,head_dim=,ctx=, "
              "dtype=f16|bf16|f32,tied=0|1",
              shape_into(options.target_shape));
    add_value(app, "--draft-shape", "LIST", "The same for the draft", shape_into(options.draft_shape));
    add_device(app, options.models);
    begin_group(app, "What is measured");
    add_value(app, "-p,--prompt", "TEXT", "Prompt (the beginning of a story; random tokens with --shape)",
              [&options](const std::string& flag, const std::string& text) {
                  if (text.empty()) throw Failure(kExitUsage, flag + ": the prompt is empty");
                  options.prompt = text;
              });
    add_number(app, "-n,--n-predict", "Tokens to generate each time (128; 64 with --never-slower)", options.n_predict,
               1, kMaxTokens);
    add_number(app, "-r,--repetitions", "Repetitions after one warm-up (5; 7 with --never-slower)",
               options.n_repetitions, 1, 10000);
    add_value(app, "--drafter", "LIST", "Drafters to compare with plain decoding, as those of run (model,auto)",
              [&options](const std::string& flag, const std::string& text) {
                  options.drafters.clear();
                  for (const std::string& name : split(text, ','))
                      options.drafters.push_back(parse_drafter(flag, name));
              });
    add_value(app, "--draft-len", "LIST", "Draft lengths of each but auto (1,2,3,4,6,8)",
              [&options](const std::string& flag, const std::string& text) {
                  options.draft_lens = parse_whole_list(flag, text, 1, AUSPEX_MAX_DRAFT_LEN);
              });
    app.add_flag("--no-draft", shared.no_draft, "Plain decoding only");
    begin_group(app, "Studies, instead of that");
    app.add_flag_callback(
        "--tables", [&options] { options.study = BenchStudy::tables; },
        "Tables 1, 3 and 4 of Leviathan et al. 2023 on this pair, at temperatures 0 and 1");
    app.add_flag_callback(
        "--never-slower", [&options] { options.study = BenchStudy::never_slower; },
        "Is --drafter auto ever slower than plain decoding, or than the best fixed way? Eight kinds of prompts, a "
        "useless draft, draft = target; takes minutes");
    begin_group(app, "Sampling");
    add_number(app, "-s,--seed", "Seed of the first repetition (1)", options.seed, 0, UINT64_MAX);
    add_settings(app, options.sampling, SettingGroup::sampling);
    add_biases(app, options.sampling);
    begin_group(app, "Speculation");
    add_settings(app, options.sampling, SettingGroup::speculation, {"drafter", "draft-len"});
    begin_group(app, "Output");
    app.add_flag("--json", options.json, "One JSON object instead of the table");
    add_choice<TableFormat>(app, "-o,--output", "md|csv|json", "Format of --tables (md)", options.format,
                            {{"md", TableFormat::markdown}, {"csv", TableFormat::csv}, {"json", TableFormat::json}});
    add_text(app, "--plot", "FILE", "Speed-up against K, measured and predicted, as an SVG file", options.plot);
    end_groups(app);
    app.footer(std::string(kBenchExamples) + kExitCodes);
}

void complete(RunOptions& options, const Shared& shared) {
    check_prompt(options.prompt);
    const ChatFormat& format = options.format;
    if (!options.is_chat && (format.system || !format.template_name.empty() || format.date))
        throw Failure(kExitUsage, "--system, --chat-template and --date: expected --chat too");
    if (options.is_chat && !options.prompt.tokens.empty())
        throw Failure(kExitUsage, "--tokens and --chat exclude each other: token ids are used verbatim");
    choose_models(shared, settle_drafting(options.sampling, shared.no_draft), false, false, options.models);
}

void complete(ChatOptions& options, const Shared& shared) {
    choose_models(shared, settle_drafting(options.sampling, shared.no_draft), false, false, options.models);
}

namespace {

std::string needed_by(const BenchOptions& options, const GivenFlags& given) {
    if (options.study == BenchStudy::tables) return "--tables";
    const auto by_model = std::find_if(options.drafters.begin(), options.drafters.end(), is_models);
    if (given.has("--drafter") && by_model != options.drafters.end())
        return std::string("--drafter ") + drafter_name(*by_model);
    if (given.has("--draft-len") && !given.has("--drafter"))
        return format("--draft-len %u", options.draft_lens.front());
    return "";
}

void check_study(BenchOptions& options, const GivenFlags& given) {
    if (given.has("--tables") && given.has("--never-slower"))
        throw Failure(kExitUsage, "--tables and --never-slower exclude each other");
    const std::string study = given.has("--tables") ? "--tables" : given.has("--never-slower") ? "--never-slower" : "";
    if (study != "--tables" && given.has("--output")) throw Failure(kExitUsage, "-o: expected --tables too");
    if (options.json && given.has("--output") && options.format != TableFormat::json)
        throw Failure(kExitUsage, "--json and -o contradict each other: give one of them");
    if (options.json) options.format = TableFormat::json;
    if (options.plot && options.plot->empty()) throw Failure(kExitUsage, "--plot \"\": expected an SVG file to write");
    if (study.empty()) return;
    const std::string chooses = study == "--tables" ? "it has its own" : "it has its own prompts and ways";
    for (const char* flag : {"--shape", "--draft-shape", "--drafter", "--draft-len", "--no-draft", "--temp"})
        if (given.has(flag)) throw Failure(kExitUsage, study + " and " + flag + " exclude each other: " + chooses);
    if (study == "--tables") // theory is compared with the models' own distributions
        for (const char* flag : {"--logit-bias", "--ban", "--acceptance", "--lenience", "--top-k", "--top-p", "--min-p",
                                 "--repeat-penalty", "--presence-penalty", "--frequency-penalty"})
            if (given.has(flag))
                throw Failure(kExitUsage, study + " and " + flag + " exclude each other: leave " + flag + " out");
    if (study == "--never-slower")
        for (const char* flag : {"--prompt", "--plot"})
            if (given.has(flag)) throw Failure(kExitUsage, study + " and " + flag + " exclude each other: " + chooses);
    if (options.study == BenchStudy::tables) return;
    if (!given.has("--n-predict")) options.n_predict = 64;
    if (!given.has("--repetitions")) options.n_repetitions = 7;
}

} // namespace

void complete(BenchOptions& options, const Shared& shared, const GivenFlags& given) {
    if (options.target_shape && given.has("--prompt"))
        throw Failure(kExitUsage, "-p: random weights (--shape) have no tokenizer; leave the prompt out");
    check_study(options, given);
    for (const char* flag : {"--drafter", "--draft-len"})
        if (shared.no_draft && given.has(flag))
            throw Failure(kExitUsage,
                          std::string("--no-draft and ") + flag + " contradict each other: give one of them");
    check_together(options.sampling);
    std::vector<auspex_drafter>& drafters = options.drafters;
    if (shared.no_draft) drafters.clear();
    std::erase(drafters, AUSPEX_DRAFTER_NONE); // plain decoding is always among the rows
    const bool may_use = std::any_of(drafters.begin(), drafters.end(), [](auspex_drafter drafter) {
        return is_models(drafter) || drafter == AUSPEX_DRAFTER_AUTO;
    });
    choose_models(shared, {may_use, needed_by(options, given)}, options.target_shape.has_value(),
                  options.draft_shape.has_value(), options.models);
    if (!may_use) options.draft_shape.reset();
    if (options.models.draft.empty() && !options.draft_shape) std::erase_if(drafters, is_models);
    const bool has_model = std::find(drafters.begin(), drafters.end(), AUSPEX_DRAFTER_MODEL) != drafters.end();
    if (options.plot && !has_model)
        throw Failure(kExitUsage, "--plot: expected the drafter model among those that are compared");
}

} // namespace auspex::cli
