// All commands: a command line becomes the options of one of them.
#pragma once

#include "cli/batch/options.h"
#include "cli/bench/options.h"
#include "cli/chat/options.h"
#include "cli/info/options.h"
#include "cli/quantize/options.h"
#include "cli/run/options.h"
#include "cli/score/options.h"
#if AUSPEX_HAS_SERVER
#include "cli/serve/options.h"
#endif
#include "cli/selftest/options.h"
#include "cli/tokenize/options.h"
#include "cli/tune/options.h"

#include <string>
#include <variant>
#include <vector>

namespace auspex::cli {

// Text that was asked for instead of a command: --help, --version.
struct Notice {
    std::string text;
};

using Command = std::variant<Notice, RunOptions, ChatOptions, InfoOptions, BenchOptions, TokenizeOptions, ScoreOptions,
                             QuantizeOptions, SelftestOptions, TuneOptions, BatchOptions
#if AUSPEX_HAS_SERVER
                             ,
                             ServeOptions
#endif
                             >;

// arguments[0] is the program. Throws Failure(kExitUsage).
Command parse_command_line(std::vector<std::string> arguments);

} // namespace auspex::cli
