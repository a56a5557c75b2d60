// What auspex tune found out, as plain data, and the ways to show it on stdout.
#pragma once

#include "cli/common/engine/client.h"
#include "cli/tune/options.h"

namespace auspex::cli {

struct TuneReport {
    auspex_tuning_report tuning{};
    std::vector<TuningCandidate> candidates{}; // knob by knob
};

void print_json(const TuneReport& report);
void print_listing(const TuneReport& report);

} // namespace auspex::cli
