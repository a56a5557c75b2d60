// The checks of auspex selftest, and what one of them found. The command in commands/selftest.cpp runs and shows them.
#pragma once

#include "cli/selftest/rig.h"

#include <functional>
#include <optional>

namespace auspex::cli {

struct CheckResult {
    std::string name;
    bool passed = false;
    std::string figure;                                     // one line: what was compared, and what came out
    std::vector<std::pair<std::string, double>> measured{}; // the same as numbers, for JSON
    double seconds = 0.0;                                   // wall time; filled in by who is told
};

using Tell = std::function<void(CheckResult result)>;

// Each runs a few checks and tells every one when it is done. `models` says on which device; only check_pair uses its
// paths.
void check_sampling(const ModelOptions& models, const Tell& tell);
void check_greedy(const ModelOptions& models, const Tell& tell);
void check_coupled(const ModelOptions& models, const Tell& tell);
void check_pair(const ModelOptions& models, const Tell& tell);

} // namespace auspex::cli
