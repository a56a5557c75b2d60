// What the command line asks for, every value checked, and the commands that do it.
#pragma once

#include "cli/values.h"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace auspex::cli {

enum class ColorMode { automatic, always, never };

inline constexpr const char* kBuiltInPrompt = "Once upon a time there was a curious fox named Ruby.";

// Which models run where. Shared by run and bench.
struct ModelOptions {
    std::string target; // folder; empty: a synthetic shape instead
    std::string draft;  // folder; empty: none
    std::optional<std::string> device;
    uint32_t context = 0; // tokens; 0: the smaller of the model's and 4096
    auspex_cache_type cache_type = AUSPEX_CACHE_F16;
};

struct RunOptions {
    ModelOptions models;
    bool is_bundled_pair = false; // neither -m nor -md was given
    std::optional<std::string> prompt_text;
    std::optional<std::string> prompt_file; // "-": stdin
    std::vector<uint32_t> prompt_tokens;    // empty: text
    uint32_t n_predict = 256;               // 0: until the context is full
    double temperature = 0.0;
    std::optional<uint64_t> seed; // absent: a random one
    uint32_t draft_len = 4;       // 0 when there is no draft
    uint32_t n_samples = 1;
    bool ignore_eos = false;
    bool json = false;
    ColorMode color = ColorMode::automatic;
};

struct InfoOptions {
    std::string target; // folder; empty: devices only
    std::string draft;
    auspex_cache_type cache_type = AUSPEX_CACHE_F16;
    bool json = false;
};

struct BenchOptions {
    ModelOptions models;
    std::optional<auspex_synthetic_shape> target_shape, draft_shape;
    std::string prompt = kBuiltInPrompt;
    uint32_t n_predict = 128;
    uint32_t n_repetitions = 5;
    std::vector<uint32_t> draft_lens = {1, 2, 3, 4, 6, 8}; // empty when there is no draft
    double temperature = 0.0;
    uint64_t seed = 1;
    bool json = false;
};

// Text that was asked for instead of a command: --help, --version.
struct Notice {
    std::string text;
};

using Command = std::variant<Notice, RunOptions, InfoOptions, BenchOptions>;

// arguments[0] is the program. Throws Failure(kExitUsage).
Command parse_command_line(std::vector<std::string> arguments);

// Each returns the exit code, or throws Failure.
int run(const RunOptions& options);
int info(const InfoOptions& options);
int bench(const BenchOptions& options);

} // namespace auspex::cli
