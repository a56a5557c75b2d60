// auspex score: what it is asked, with every value checked; its flags (flags.cpp) and the command (score.cpp).
#pragma once

#include "cli/common/input/options.h"

namespace auspex::cli {

struct ScoreOptions {
    ModelOptions models; // no draft
    PromptOptions prompt;
    std::vector<int64_t> logits_at; // positions; negative ones count from the end
    bool json = false;
};

void declare_score(CLI::App& app, ScoreOptions& options, Shared& shared);
void complete(ScoreOptions& options, const Shared& shared); // checks what the flags say together
int score(const ScoreOptions& options); // the exit code; throws Failure

} // namespace auspex::cli
