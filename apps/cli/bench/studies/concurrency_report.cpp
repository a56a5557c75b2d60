// The table for people, and JSON.
#include "cli/bench/studies/concurrency_report.h"

#include "cli/common/output/json.h"

#include <cstdio>

namespace auspex::cli {

void print_table(const ConcurrencyReport& report) {
    std::printf("%s, %s\nsequences that come at random, some %u tokens each, %u alternations; tok/s of all\n"
                "together are medians, the ratio is the median of the alternations' ratios\n\n",
                report.engine.device_name, report.engine.driver, report.options.n_predict, report.options.n_repetitions);
    std::printf("%7s %9s %9s %8s %12s %12s %9s\n", "at once", "plain", "auto", "by plain", "first token", "longest gap", "CPU/round");
    std::printf("%7s %9s %9s %8s %12s %12s %9s\n", "", "tok/s", "tok/s", "", "ms, median", "ms, p99", "us");
    for (const ConcurrencyRow& row : report.rows)
        std::printf("%7u %9.1f %9.1f %8.2f %12.1f %12.1f %9.0f\n", row.n_sequences, row.plain, row.automatic, row.over_plain, row.first_token_ms,
                    row.longest_gap_ms, row.cpu_us_per_round);
}

void print_json(const ConcurrencyReport& report) {
    Json rows = Json::array();
    for (const ConcurrencyRow& row : report.rows)
        rows.push_back({{"n_sequences", row.n_sequences},
                        {"plain_per_second", row.plain},
                        {"auto_per_second", row.automatic},
                        {"auto_over_plain", row.over_plain},
                        {"first_token_ms", row.first_token_ms},
                        {"longest_gap_ms", row.longest_gap_ms},
                        {"cpu_us_per_round", row.cpu_us_per_round}});
    print({{"schema", kSchema},
           {"device", device_json(report.engine)},
           {"model", models_json(report.options.models)},
           {"predicted_n", report.options.n_predict},
           {"repetitions", report.options.n_repetitions},
           {"results", rows}});
}

} // namespace auspex::cli
