// auspex chat: what it is asked, with every value checked; its flags (flags.cpp) and the command (chat.cpp).
#pragma once

#include "cli/common/input/options.h"

namespace auspex::cli {

struct ChatOptions {
    ModelOptions models;
    SamplingOptions sampling{.n_predict = 1024};
    ChatFormat format;
    ColorMode color = ColorMode::automatic;
};

void declare_chat(CLI::App& app, ChatOptions& options, Shared& shared);
void complete(ChatOptions& options, const Shared& shared); // checks what the flags say together
int chat(const ChatOptions& options); // the exit code; throws Failure

} // namespace auspex::cli
