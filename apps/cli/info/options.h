// auspex info: what it is asked, with every value checked; its flags (flags.cpp) and the command (info.cpp).
#pragma once

#include "cli/common/input/options.h"

namespace auspex::cli {

struct InfoOptions {
    ModelOptions models; // target empty: devices only
    bool json = false;
};

void declare_info(CLI::App& app, InfoOptions& options, Shared& shared);
void complete(InfoOptions& options, const Shared& shared); // checks what the flags say together
int info(const InfoOptions& options); // the exit code; throws Failure

} // namespace auspex::cli
