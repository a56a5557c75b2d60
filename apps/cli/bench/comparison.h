// Ways of decoding compared with plain decoding on one prompt, and what theory expects of them.
#pragma once

#include "cli/bench/measurement.h"
#include "cli/bench/output/report.h"

namespace auspex::cli {

// Plain, then every way, then plain again …; one result for each, plain first. Repetition 0 warms up and is not
// counted.
std::vector<BenchResult> compare_ways(Client& client, const TrialSetting& setting, const std::vector<Way>& ways,
                                      uint32_t n_repetitions, uint64_t first_seed, const std::string& label);

// Room for the longest of them; auto takes the usual one.
uint32_t max_draft_len_of(const std::vector<Way>& ways);

// The other things bench does (studies/): tables of the literature on this pair, and whether auto is ever slower, alone or in company.
int bench_tables(const BenchOptions& options);
int bench_never_slower(const BenchOptions& options);
int bench_concurrency(const BenchOptions& options);

} // namespace auspex::cli
