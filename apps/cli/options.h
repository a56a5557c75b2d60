// What the command line asks for, every value checked, and the commands that do it.
#pragma once

#include "cli/sampling/sampling.h"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace auspex::cli {

enum class ColorMode { automatic, always, never };

inline constexpr const char* kBuiltInPrompt = "Once upon a time there was a curious fox named Ruby.";

// Which models run where. Shared by all commands that run one.
struct ModelOptions {
    std::string target; // GGUF file or folder; empty: a synthetic shape instead
    std::string draft;  // GGUF file or folder; empty: none
    auspex_weight_type target_weights = AUSPEX_WEIGHTS_AS_IS, draft_weights = AUSPEX_WEIGHTS_AS_IS;
    std::optional<std::string> device;
    uint32_t context = 0; // tokens; 0: the smaller of the target's and 4096
    auspex_cache_type cache_type = AUSPEX_CACHE_F16;
    bool is_bundled_pair = false; // neither -m nor -md was given
};

// Where a text comes from: at most one of these; none of them: stdin, or what the command puts in its place.
struct PromptOptions {
    std::optional<std::string> text;
    std::optional<std::string> file; // "-": stdin
    std::vector<uint32_t> tokens;    // empty: text
};

struct ChatFormat {
    std::optional<std::string> system; // absent: the model's own default, which often is none
    std::string template_name;         // empty: the one the model's own template is recognised as
    std::optional<std::string> date;   // as llama3 writes it; absent: today
};

struct RunOptions {
    ModelOptions models;
    PromptOptions prompt;
    SamplingOptions sampling;
    ChatFormat format; // only read with is_chat
    bool is_chat = false;
    uint32_t n_samples = 1;
    bool ignore_eos = false;
    std::optional<std::string> trace; // file for a trace of the run
    bool json = false;
    bool may_demonstrate = false; // no flag was given, or --json alone
    ColorMode color = ColorMode::automatic;
};

struct ChatOptions {
    ModelOptions models;
    SamplingOptions sampling{.n_predict = 1024};
    ChatFormat format;
    ColorMode color = ColorMode::automatic;
};

struct InfoOptions {
    ModelOptions models; // target empty: devices only
    bool json = false;
};

enum class BenchStudy { compare, tables, never_slower };
enum class TableFormat { markdown, csv, json, json_lines };

struct BenchOptions {
    BenchStudy study = BenchStudy::compare;
    std::optional<TableFormat> format{};        // rows for programs; of the tables study Markdown otherwise
    std::optional<std::string> plot;            // SVG file to write
    ModelOptions models;
    std::optional<auspex_synthetic_shape> target_shape, draft_shape;
    std::string target_text, draft_text; // how the models were named: a path or a shape; "" for none
    PromptOptions prompt{kBuiltInPrompt, {}, {}};
    uint32_t n_predict = 128;   // of the comparison, the first of n_generate; never_slower: 64
    // Rows as llama-bench's: prompts read and tokens generated, each behind every depth. An empty list: none.
    std::optional<std::vector<uint32_t>> n_prompt{}; // absent: 512, or what the context holds
    std::vector<uint32_t> n_generate = {128};
    std::vector<uint32_t> depths = {0};
    std::vector<uint32_t> pass_rows = {1};   // passes timed by themselves
    bool with_stages = false;                // … stage by stage, too
    std::optional<double> peak_tflops{};     // of the device's matrix units
    std::optional<double> simulated_alpha{}; // acceptance is simulated, the text means nothing
    uint32_t n_repetitions = 5; // never_slower: 7
    // Rows: each drafter with each draft_len, auto with its own choice; after plain decoding.
    std::vector<auspex_drafter> drafters = {AUSPEX_DRAFTER_MODEL, AUSPEX_DRAFTER_AUTO};
    std::vector<uint32_t> draft_lens = {1, 2, 3, 4, 6, 8};
    SamplingOptions sampling; // of every row; drafter, draft_len, n_predict and seed are not read
    uint64_t seed = 1;
    bool json = false;
};

struct TokenizeOptions {
    std::string model;
    PromptOptions prompt; // text, or with is_reverse ids
    bool is_reverse = false;
    bool parse_control_tokens = false;
    bool add_bos = false;
    bool json = false;
};

struct ScoreOptions {
    ModelOptions models; // no draft
    PromptOptions prompt;
    std::vector<int64_t> logits_at; // positions; negative ones count from the end
    bool json = false;
};

struct QuantizeOptions {
    std::string input, output;
    std::optional<auspex_weight_type> type;
    bool may_overwrite = false;
};

struct SelftestOptions {
    ModelOptions models;
    bool json = false;
    std::optional<double> seconds_for_draws; // for tests: 0 is the small size everywhere; absent: the program's own
};

struct TuneOptions {
    ModelOptions models;
    bool json = false;
};

// Text that was asked for instead of a command: --help, --version.
struct Notice {
    std::string text;
};

using Command = std::variant<Notice, RunOptions, ChatOptions, InfoOptions, BenchOptions, TokenizeOptions, ScoreOptions,
                             QuantizeOptions, SelftestOptions, TuneOptions>;

// arguments[0] is the program. Throws Failure(kExitUsage).
Command parse_command_line(std::vector<std::string> arguments);

// Each returns the exit code, or throws Failure.
int run(const RunOptions& options);
int chat(const ChatOptions& options);
int info(const InfoOptions& options);
int bench(const BenchOptions& options);
int tokenize(const TokenizeOptions& options);
int score(const ScoreOptions& options);
int quantize(const QuantizeOptions& options);
int selftest(const SelftestOptions& options);
int tune(const TuneOptions& options);

} // namespace auspex::cli
