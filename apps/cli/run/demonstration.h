// What `auspex run` shows when nothing is asked of it: that drafts make a story come sooner and change no token of it.
#pragma once

#include "cli/common/engine/client.h"
#include "cli/run/report.h"

namespace auspex::cli {

// Compiles what the two stories need and learns what rounds cost, with a progress bar. False: Ctrl-C came.
bool prepare_demonstration(Client& client, const RunReport& report);
// Tells the report's story silently without drafts, then both ways again in turn while a second lasts. Absent: Ctrl-C came, now
// or earlier.
std::optional<Demonstration> tell_again(Client& client, const RunReport& report);
// Throws Failure(kExitInternal) where the two stories are not one.
void check_equal(const Demonstration& demonstration);

} // namespace auspex::cli
