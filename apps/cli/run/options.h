// auspex run: what it is asked, with every value checked; its flags (flags.cpp) and the command (run.cpp).
#pragma once

#include "cli/common/input/options.h"

namespace auspex::cli {

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

void declare_run(CLI::App& app, RunOptions& options, Shared& shared);
void complete(RunOptions& options, const Shared& shared, const GivenFlags& given); // checks what the flags say together
int run(const RunOptions& options); // the exit code; throws Failure

} // namespace auspex::cli
