// What auspex info found out, as plain data, and the ways to show it.
#pragma once

#include "cli/common/engine/self_draft.h"
#include "cli/info/options.h"

#include <utility>

namespace auspex::cli {

struct InfoReport {
    std::vector<auspex_device_info> devices;
    std::vector<std::pair<std::string, auspex_model_info>> models; // (path, description)
    std::optional<auspex_memory_plan> plan;                        // of one sequence of these models
    std::optional<SelfDraftVerdict> self_draft;                    // of the target alone
    std::optional<auspex_tuning_report> tuning;                    // for these models
};

// One object and a line end on stdout. The keys are stable; new ones are added at the end of their object.
void print_json(const InfoReport& report);
void print_listing(const InfoReport& report); // for people, on stdout

} // namespace auspex::cli
