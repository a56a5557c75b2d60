// Flags of bench.
#include "cli/bench/options.h"
#include "cli/common/input/shapes.h"
#include "cli/common/input/shared_flags.h"

#include <algorithm>

namespace auspex::cli {

namespace {

constexpr const char* kBenchExamples =
    "First come rows as llama-bench has them (pp: prompts read up to the first token,\n"
    "tg: tokens generated without drafts), then passes of the models by themselves,\n"
    "with the bytes they read as a share of what a copy by a kernel reaches here\n"
    "(bytes read and written counted), then the comparison with speculation. Its rows:\n"
    "plain decoding, each drafter with each draft length, and auto, which chooses\n"
    "for itself. A model's speed-up is predicted as (1 - a^(K+1)) / (1 - a) /\n"
    "(K c + v(K+1)) for the measured acceptance probability a, c = draft pass / target\n"
    "pass and v(n) = pass of n rows / pass of one (Leviathan et al. 2023, Theorem 3.8,\n"
    "extended by v), with what a round costs besides its passes added to both sides.\n\n"
    "Examples:\n"
    "  auspex bench\n"
    "  auspex bench --draft-len 2,4,8 -r 9 --json\n"
    "  auspex bench --drafter model,ngram,hybrid,auto --draft-len 4\n"
    "  auspex bench --concurrency 1,4,16\n"
    "  auspex bench --tables --plot speedup.svg > tables.md\n"
    "  auspex bench -p 512,2048 -n 128 -d 0,4096 -c 8192 -o csv --no-draft\n"
    "  auspex bench --shape d=1024,L=12,ffn=2816,heads=16,kv_heads=4,vocab=32000\n"
    "  auspex bench --shape llama-3.2-3b --draft-shape llama-3.2-1b,dtype=q4_0 \\\n"
    "               --alpha 0.8 --draft-len 4 --rows 1,5 --stages\n\n";

// 0 alone is none of them.
std::vector<uint32_t> parse_counts(const std::string& flag, const std::string& text, const std::string& advice) {
    if (text == "0") return {};
    try {
        return parse_whole_list(flag, text, 1, kMaxTokens);
    } catch (const Failure& failure) {
        throw Failure(failure.exit_code(), failure.what() + std::string(" (0 alone: none)") + advice);
    }
}

std::string needed_by(const BenchOptions& options, const GivenFlags& given) {
    if (options.study == BenchStudy::tables) return "--tables";
    for (const auto& needs : {needs_model, needs_either}) {
        const auto by_pass = std::find_if(options.drafters.begin(), options.drafters.end(), needs);
        if (given.has("--drafter") && by_pass != options.drafters.end())
            return std::string("--drafter ") + drafter_name(*by_pass);
    }
    if (given.has("--draft-len") && !given.has("--drafter"))
        return format("--draft-len %u", options.draft_lens.front());
    return "";
}

void check_simulation(const BenchOptions& options, const Shared& shared) {
    const auto exclude = [](const std::string& other) {
        return Failure(kExitUsage, "--alpha and " + other + " exclude each other: a simulated acceptance asks nothing of the drafts");
    };
    if (options.sampling.acceptance != AUSPEX_ACCEPT_REJECTION) throw exclude("--acceptance coupled");
    if (options.sampling.lenience < 1.0) throw exclude("--lenience");
    if (shared.no_draft) throw exclude("--no-draft");
}

void check_study(BenchOptions& options, const GivenFlags& given) {
    std::string study;
    for (const char* flag : {"--tables", "--never-slower", "--concurrency"}) {
        if (!given.has(flag)) continue;
        if (!study.empty()) throw Failure(kExitUsage, study + " and " + flag + " exclude each other");
        study = flag;
    }
    if (!study.empty() && study != "--tables" && given.has("--output"))
        throw Failure(kExitUsage, "-o and " + study + " exclude each other: expected --json, or neither");
    if (options.json && given.has("--output") && options.format != TableFormat::json)
        throw Failure(kExitUsage, "--json and -o contradict each other: give one of them");
    if (options.json) options.format = TableFormat::json;
    if (options.plot && options.plot->empty()) throw Failure(kExitUsage, "--plot \"\": expected an SVG file to write");
    if (study.empty()) return;
    const std::string chooses = study == "--tables" ? "it has its own" : "it has its own prompts and ways";
    for (const char* flag : {"--n-prompt", "--n-depth", "--rows", "--stages", "--peak", "--alpha", "--file"})
        if (given.has(flag)) throw Failure(kExitUsage, study + " and " + flag + " exclude each other: leave " + flag + " out");
    if (options.n_generate.size() != 1) throw Failure(kExitUsage, study + ": expected -n to be one number above 0");
    for (const char* flag : {"--shape", "--draft-shape", "--drafter", "--draft-len", "--no-draft", "--temp"})
        if (given.has(flag)) throw Failure(kExitUsage, study + " and " + flag + " exclude each other: " + chooses);
    if (study == "--tables") // theory is compared with the models' own distributions
        for (const char* flag : {"--logit-bias", "--ban", "--acceptance", "--lenience", "--top-k", "--top-p", "--min-p",
                                 "--repeat-penalty", "--presence-penalty", "--frequency-penalty"})
            if (given.has(flag))
                throw Failure(kExitUsage, study + " and " + flag + " exclude each other: leave " + flag + " out");
    if (study != "--tables")
        for (const char* flag : {"--prompt", "--plot"})
            if (given.has(flag)) throw Failure(kExitUsage, study + " and " + flag + " exclude each other: " + chooses);
    if (options.study == BenchStudy::tables) return;
    if (!given.has("--n-predict")) options.n_predict = 64;
    if (!given.has("--repetitions")) options.n_repetitions = 7;
}

} // namespace

void declare_bench(CLI::App& app, BenchOptions& options, Shared& shared) {
    begin_group(app, "Models and device");
    add_models(app, shared, options.models, kBundledPair);
    add_shapes(app, options.shapes);
    add_device(app, options.models);
    begin_group(app, "What is measured");
    add_value(app, "-p,--n-prompt", "LIST", "Prompts to read, in tokens, 0 for none (512); their text is --prompt's affair",
              [&options](const std::string& flag, const std::string& text) {
                  options.n_prompt = parse_counts(flag, text, "; the text of a prompt is --prompt TEXT");
              });
    add_value(app, "-n,--n-gen,--n-predict", "LIST",
              "Tokens to generate each time, 0 for none (128; 64 with --never-slower and --concurrency); the first is the comparison's too",
              [&options](const std::string& flag, const std::string& text) {
                  options.n_generate = parse_counts(flag, text, "");
                  options.n_predict = options.n_generate.empty() ? 0 : options.n_generate.front();
              });
    add_value(app, "-d,--n-depth", "LIST", "Tokens that are known before, for each of these (0)",
              [&options](const std::string& flag, const std::string& text) {
                  options.depths = parse_whole_list(flag, text, 0, kMaxTokens);
              });
    add_value(app, "--rows", "LIST", "Passes timed by themselves: of so many rows, 0 for none (1)",
              [&options](const std::string& flag, const std::string& text) {
                  options.pass_rows = parse_whole_list(flag, text, 0, AUSPEX_MAX_DRAFT_LEN + 1);
                  std::erase(options.pass_rows, 0u);
              });
    app.add_flag("--stages", options.with_stages, "… stage by stage, too");
    add_value(app, "--peak", "TFLOPS", "What the device's matrix units can do, to compare prompts with",
              [&options](const std::string& flag, const std::string& text) {
                  options.peak_tflops = parse_number(flag, text, 0.001, 1e6);
              });
    add_text(app, "--prompt", "TEXT", "Prompt of the comparison (the beginning of a story; random tokens with --shape or -d)",
             options.prompt.text);
    add_text(app, "-f,--file", "FILE", "The same from a file (-: stdin)", options.prompt.file);
    add_number(app, "-r,--repetitions", "Repetitions after one warm-up (5; 7 with --never-slower and --concurrency)",
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
    add_value(app, "--alpha", "A",
              "Accept each draft with this probability, whatever it is: how fast a pair would be that agrees so often. "
              "The text means nothing; all work is done",
              [&options](const std::string& flag, const std::string& text) {
                  options.simulated_alpha = parse_number(flag, text, 0.0, 1.0);
              });
    begin_group(app, "Studies, instead of that");
    app.add_flag_callback(
        "--tables", [&options] { options.study = BenchStudy::tables; },
        "Tables 1, 3 and 4 of Leviathan et al. 2023 on this pair, at temperatures 0 and 1");
    app.add_flag_callback(
        "--never-slower", [&options] { options.study = BenchStudy::never_slower; },
        "Is --drafter auto ever slower than plain decoding, or than the best fixed way? Eight kinds of prompts, a "
        "useless draft, draft = target; takes minutes");
    add_value(app, "--concurrency", "LIST",
              "Is --drafter auto ever slower where so many sequences that come at random run at once (1,2,4,8,16)?",
              [&options](const std::string& flag, const std::string& text) {
                  options.study = BenchStudy::concurrency;
                  options.concurrencies = parse_whole_list(flag, text, 1, 256);
              });
    begin_group(app, "Sampling");
    add_number(app, "-s,--seed", "Seed of the first repetition (1)", options.seed, 0, UINT64_MAX);
    add_settings(app, options.sampling, SettingGroup::sampling);
    add_biases(app, options.sampling);
    begin_group(app, "Speculation");
    add_settings(app, options.sampling, SettingGroup::speculation, {"drafter", "draft-len"});
    begin_group(app, "Output");
    app.add_flag("--json", options.json, "One JSON object instead of the table");
    add_choice<std::optional<TableFormat>>(app, "-o,--output", "",
                                           "Rows instead of what people read (--tables: md), every table with a line of titles, "
                                           "or every row an object",
                                           options.format,
                                           {{"md", TableFormat::markdown},
                                            {"csv", TableFormat::csv},
                                            {"json", TableFormat::json},
                                            {"jsonl", TableFormat::json_lines}});
    add_text(app, "--plot", "FILE", "Speed-up against K, measured and predicted, as an SVG file", options.plot);
    end_groups(app);
    app.footer(std::string(kBenchExamples) + kExitCodes);
}

void complete(BenchOptions& options, const Shared& shared, const GivenFlags& given) {
    if (given.has("--prompt") && given.has("--file"))
        throw Failure(kExitUsage, "--prompt and -f exclude each other: give one of them");
    if (given.has("--file")) options.prompt.text.reset();
    const char* text_flag = given.has("--prompt") ? "--prompt" : given.has("--file") ? "-f" : nullptr;
    if (options.shapes.target && text_flag != nullptr)
        throw Failure(kExitUsage, std::string(text_flag) + ": random weights (--shape) have no tokenizer; leave the prompt out");
    if (given.has("--prompt") && options.prompt.text->empty()) throw Failure(kExitUsage, "--prompt: the prompt is empty");
    if (text_flag != nullptr && options.depths.front() > 0)
        throw Failure(kExitUsage, std::string("-d and ") + text_flag + " exclude each other: the text after a depth is random");
    if (options.simulated_alpha) check_simulation(options, shared);
    check_study(options, given);
    for (const char* flag : {"--drafter", "--draft-len"})
        if (shared.no_draft && given.has(flag))
            throw Failure(kExitUsage,
                          std::string("--no-draft and ") + flag + " contradict each other: give one of them");
    check_together(options.sampling);
    std::vector<auspex_drafter>& drafters = options.drafters;
    if (options.models.self_quant && !given.has("--drafter")) drafters = {AUSPEX_DRAFTER_SELF, AUSPEX_DRAFTER_AUTO};
    if (options.simulated_alpha && !given.has("--drafter")) drafters.pop_back(); // auto would judge coins
    if (shared.no_draft) drafters.clear();
    std::erase(drafters, AUSPEX_DRAFTER_NONE); // plain decoding is always among the rows
    const bool may_use = std::any_of(drafters.begin(), drafters.end(), [](auspex_drafter drafter) {
        return needs_model(drafter) || needs_either(drafter) || drafter == AUSPEX_DRAFTER_AUTO;
    });
    const bool by_self = std::any_of(drafters.begin(), drafters.end(), needs_self);
    const bool by_model = std::any_of(drafters.begin(), drafters.end(), needs_model);
    const bool by_either = !by_model && std::any_of(drafters.begin(), drafters.end(), needs_either);
    if (by_self && by_model)
        throw Failure(kExitUsage, "--drafter: self and the draft model exclude each other: an engine has one of them");
    choose_models(shared, {may_use, needed_by(options, given), by_self, by_either}, options.shapes.target.has_value(),
                  options.shapes.draft.has_value(), options.models);
    if (!may_use) options.shapes.draft.reset();
    options.target_text = options.shapes.target ? options.shapes.target_text : options.models.target;
    options.draft_text = options.shapes.draft ? options.shapes.draft_text : options.models.draft;
    if (options.models.draft.empty() && !options.shapes.draft) std::erase_if(drafters, needs_model);
    if (options.plot && std::none_of(drafters.begin(), drafters.end(), drafts_by_pass_alone))
        throw Failure(kExitUsage, "--plot: expected the drafter model or self among those that are compared");
}

} // namespace auspex::cli
