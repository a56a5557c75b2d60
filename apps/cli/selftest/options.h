// auspex selftest: what it is asked, with every value checked; its flags (flags.cpp) and the command (selftest.cpp).
#pragma once

#include "cli/common/input/options.h"

namespace auspex::cli {

struct SelftestOptions {
    ModelOptions models;
    bool json = false;
    std::optional<double> seconds_for_draws; // for tests: 0 is the small size everywhere; absent: the program's own
};

void declare_selftest(CLI::App& app, SelftestOptions& options, Shared& shared);
void complete(SelftestOptions& options, const Shared& shared); // checks what the flags say together
int selftest(const SelftestOptions& options); // the exit code; throws Failure

} // namespace auspex::cli
