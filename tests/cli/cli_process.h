// Runs the auspex program as a user would, and what several tests of it share. POSIX only.
#pragma once

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <utility>
#include <vector>

namespace auspex::test {

using Json = nlohmann::ordered_json;

struct CliResult {
    int exit_code = -1; // 128 + n when signal n ended it
    std::string out, err;
};

struct CliSetting {
    std::string input = {};                                            // stdin, through a pipe
    bool has_input = false;                                            // false: /dev/null
    std::vector<std::pair<const char*, const char*>> environment = {}; // a null value unsets
    int n_interrupts = 0;                                              // SIGINTs once stdout has shown something
    const char* output_file = nullptr;                                 // stdout goes here instead
};

CliResult run_cli(const std::vector<std::string>& arguments, const CliSetting& setting = {});
// stdin, stdout and stderr are one terminal; what it showed is in `out`.
CliResult run_cli_in_terminal(const std::vector<std::string>& arguments, const CliSetting& setting = {});

// Runs with --json, expects success, returns the object.
Json run_cli_json(std::vector<std::string> arguments, const CliSetting& setting = {});

std::vector<std::string> keys_of(const Json& object);

inline const std::string kTarget = AUSPEX_PAIR_DIR "/target";
inline const std::string kDraft = AUSPEX_PAIR_DIR "/draft";

} // namespace auspex::test
