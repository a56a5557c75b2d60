// Rows as llama-bench has them, and passes timed by themselves, each beside what the device's memory can do.
#pragma once

#include "cli/bench/output/report.h"

namespace auspex::cli {

// Tokens of context that the rows asked for take; 0: what a context holds anyway.
uint32_t context_needed(const BenchOptions& options);
// Without drafts. Throws Failure(kExitCapacity) naming the flag when a row does not fit the context.
SpeedReport measure_speed(Client& client, const BenchOptions& options);
// Fills in what results say beside the passes of the report.
void compare_with_passes(const SpeedReport& report, const BenchOptions& options, std::vector<BenchResult>& results);

// Token ids of a text that means nothing.
std::vector<uint32_t> filler_tokens(uint32_t count, uint32_t vocab_size);

} // namespace auspex::cli
