// auspex tune: what it is asked, with every value checked; its flags (flags.cpp) and the command (tune.cpp).
#pragma once

#include "cli/common/input/options.h"

namespace auspex::cli {

struct TuneOptions {
    ModelOptions models;
    ShapeOptions shapes;
    bool json = false;
};

void declare_tune(CLI::App& app, TuneOptions& options, Shared& shared);
void complete(TuneOptions& options, const Shared& shared); // checks what the flags say together
int tune(const TuneOptions& options); // the exit code; throws Failure

} // namespace auspex::cli
