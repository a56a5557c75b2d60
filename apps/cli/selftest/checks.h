// The checks of auspex selftest, and what one of them found. The command in selftest.cpp runs and shows them.
#pragma once

#include "cli/selftest/effort.h"
#include "cli/selftest/rig.h"

#include <chrono>
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

inline constexpr uint32_t kMaxDraftLen = 8; // draft tokens of a round: a check tries each K up to it, or few and this one

inline double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// How much checks do, and whom they tell.
struct Run {
    Effort effort;
    std::function<void(CheckResult result)> tell;   // when a check is done
    std::function<void(double fraction)> progress; // 0…1 of the function below that runs
};

// Each runs a few checks and tells every one when it is done. `models` says on which device; only check_pair uses its
// paths. check_sampling runs first: it decides how much all do.
void check_sampling(const ModelOptions& models, Run& run);
void check_greedy(const ModelOptions& models, Run& run);
void check_coupled(const ModelOptions& models, Run& run);
void check_pair(const ModelOptions& models, Run& run);

} // namespace auspex::cli
