// auspex bench: what it is asked, with every value checked; its flags (flags.cpp) and the command (bench.cpp).
#pragma once

#include "cli/common/input/options.h"

namespace auspex::cli {

enum class BenchStudy { compare, tables, never_slower, concurrency };

enum class TableFormat { markdown, csv, json, json_lines };

struct BenchOptions {
    BenchStudy study = BenchStudy::compare;
    std::optional<TableFormat> format{};        // rows for programs; of the tables study Markdown otherwise
    std::optional<std::string> plot;            // SVG file to write
    ModelOptions models;
    ShapeOptions shapes;
    std::string target_text, draft_text; // how the models were named: a path or a shape; "" for none
    PromptOptions prompt{kBuiltInPrompt, {}, {}};
    uint32_t n_predict = 128;   // of the comparison, the first of n_generate; never_slower and concurrency: 64
    // Rows as llama-bench's: prompts read and tokens generated, each after every depth. An empty list means none.
    std::optional<std::vector<uint32_t>> n_prompt{}; // absent: 512, or what the context holds
    std::vector<uint32_t> n_generate = {128};
    std::vector<uint32_t> depths = {0};
    std::vector<uint32_t> pass_rows = {1};   // passes timed by themselves
    bool with_stages = false;                // … stage by stage, too
    std::optional<double> peak_tflops{};     // of the device's matrix units
    std::optional<double> simulated_alpha{}; // acceptance is simulated, the text means nothing
    uint32_t n_repetitions = 5; // never_slower: 7
    std::vector<uint32_t> concurrencies = {}; // of the concurrency study: sequences at once
    // Rows: each drafter with each draft_len, auto with its own choice; after plain decoding.
    std::vector<auspex_drafter> drafters = {AUSPEX_DRAFTER_MODEL, AUSPEX_DRAFTER_AUTO};
    std::vector<uint32_t> draft_lens = {1, 2, 3, 4, 6, 8};
    SamplingOptions sampling; // of every row; drafter, draft_len, n_predict and seed are not read
    uint64_t seed = 1;
    bool json = false;
};

void declare_bench(CLI::App& app, BenchOptions& options, Shared& shared);
void complete(BenchOptions& options, const Shared& shared, const GivenFlags& given); // checks what the flags say together
int bench(const BenchOptions& options); // the exit code; throws Failure

} // namespace auspex::cli
