// auspex quantize: what it is asked, with every value checked; its flags (flags.cpp) and the command (quantize.cpp).
#pragma once

#include "cli/common/input/options.h"

namespace auspex::cli {

struct QuantizeOptions {
    std::string input, output;
    std::optional<auspex_weight_type> type;
    bool may_overwrite = false;
};

void declare_quantize(CLI::App& app, QuantizeOptions& options);
void complete(const QuantizeOptions& options); // checks what the flags say together
int quantize(const QuantizeOptions& options); // the exit code; throws Failure

} // namespace auspex::cli
