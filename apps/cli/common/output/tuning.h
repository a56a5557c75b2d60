// The sizes that an engine runs with, as info and tune show them.
#pragma once

#include "cli/common/output/json.h"

#include <auspex/auspex_tools.h>

namespace auspex::cli {

void print_tuning(const auspex_tuning_report& report); // a part of a listing, on stdout
Json tuning_json(const auspex_tuning_report& report);

} // namespace auspex::cli
