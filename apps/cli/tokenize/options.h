// auspex tokenize: what it is asked, with every value checked; its flags (flags.cpp) and the command (tokenize.cpp).
#pragma once

#include "cli/common/input/options.h"

namespace auspex::cli {

struct TokenizeOptions {
    std::string model;
    PromptOptions prompt; // text, or with is_reverse ids
    bool is_reverse = false;
    bool parse_control_tokens = false;
    bool add_bos = false;
    bool json = false;
};

void declare_tokenize(CLI::App& app, TokenizeOptions& options, Shared& shared);
void complete(TokenizeOptions& options, const Shared& shared); // checks what the flags say together
int tokenize(const TokenizeOptions& options); // the exit code; throws Failure

} // namespace auspex::cli
