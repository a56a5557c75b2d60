// What reading prompts, generating and single passes take here, beside what the device's memory can do. Plain data and its
// ways out; ../speed.cpp measures.
#pragma once

#include "cli/bench/output/table.h"

#include <auspex/auspex_tools.h>
#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <vector>

namespace auspex::cli {

// A row as llama-bench has it. What does not apply or is not available is absent.
struct ThroughputRow {
    std::string test; // "pp512", "tg128"
    uint32_t n_prompt = 0, n_generated = 0, depth = 0; // tokens; depth: known before the clock runs
    std::vector<double> samples{};  // tokens per second, one per repetition
    double tokens_per_second = 0.0; // median
    double stddev = 0.0;
    std::optional<double> first_token_ms{};   // of prompts; median
    std::optional<double> round_ms{};         // of generation: wall time of a token
    std::optional<double> cpu_us_per_round{}; // of generation: this thread's time
    std::optional<double> gb_per_second{};    // of generation: weights, keys and values read; 1e9 bytes
    std::optional<double> floor_percent{};    // of generation: the same, of what a copy reaches
    std::optional<double> tflops{};           // of prompts: two for each weight and token
    std::optional<double> peak_percent{};     // of prompts: of --peak
};

// A pass timed by itself.
struct PassRow {
    bool of_draft = false;
    uint32_t n_rows = 1, depth = 0;
    bool is_prompt = false; // by the prompt kernels
    auspex_pass_times times{};
    std::optional<double> v{};             // over the pass of one row of the same model at this depth
    std::optional<double> gb_per_second{}; // weights, keys and values; 1e9 bytes
    std::optional<double> floor_percent{}; // of what a copy reaches

    std::string name() const; // "target v(5)", "draft", "target p512"
    // GPU time; wall time where there are no timestamps.
    double ms() const { return times.gpu_ms >= 0.0 ? times.gpu_ms : times.wall_ms; }
};

struct SpeedReport {
    std::vector<ThroughputRow> throughput{};
    std::vector<PassRow> passes{};
    auspex_copy_speed copy{}; // bytes 0: not measured

    const PassRow* find_pass(bool of_draft, uint32_t n_rows, uint32_t depth) const; // null: not timed
};

// For people, on stdout, at most 80 columns.
void print_throughput(const SpeedReport& report);
void print_passes(const SpeedReport& report);
// For --json: keys to add to the object.
void add_json(const SpeedReport& report, nlohmann::ordered_json& json);
// For -o.
std::vector<Table> as_tables(const SpeedReport& report);

} // namespace auspex::cli
