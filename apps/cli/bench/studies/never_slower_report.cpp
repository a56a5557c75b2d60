// The verdict, the table for people, and JSON.
#include "cli/bench/studies/never_slower_report.h"

#include "cli/common/output/json.h"

#include <algorithm>
#include <cstdio>

namespace auspex::cli {

namespace {

double least(const std::vector<NeverSlowerRow>& rows, double NeverSlowerRow::*ratio) {
    double value = rows.empty() ? 0.0 : rows.front().*ratio;
    for (const NeverSlowerRow& row : rows)
        value = std::min(value, row.*ratio);
    return value;
}

double mean(const std::vector<NeverSlowerRow>& rows, double NeverSlowerRow::*ratio) {
    double sum = 0.0;
    for (const NeverSlowerRow& row : rows)
        sum += row.*ratio;
    return rows.empty() ? 0.0 : sum / static_cast<double>(rows.size());
}

} // namespace

double NeverSlowerReport::least_over_plain() const {
    return least(rows, &NeverSlowerRow::over_plain);
}

double NeverSlowerReport::mean_over_plain() const {
    return mean(rows, &NeverSlowerRow::over_plain);
}

double NeverSlowerReport::least_over_best() const {
    return least(rows, &NeverSlowerRow::over_best);
}

double NeverSlowerReport::mean_over_best() const {
    return mean(rows, &NeverSlowerRow::over_best);
}

bool NeverSlowerReport::holds() const {
    return least_over_plain() >= kLeastOverPlain && mean_over_best() >= kLeastOverBest;
}

void print_table(const NeverSlowerReport& report) {
    std::printf("%s, %s\n%u tokens each, %u alternations; tok/s are medians, ratios of auto medians of the\n"
                "alternations' ratios\n\n",
                report.engine.device_name, report.engine.driver, report.options.n_predict,
                report.options.n_repetitions);
    std::printf("%-14s %-13s %1s %7s %7s %7s %-8s %8s %7s\n", "pair", "prompt", "T", "plain", "auto", "best", "",
                "by plain", "by best");
    for (const NeverSlowerRow& row : report.rows)
        std::printf("%-14s %-13s %1g %7.1f %7.1f %7.1f %-8s %8.2f %7.2f%s\n", row.pair.c_str(), row.kind.c_str(),
                    row.temperature, row.plain, row.automatic, row.best, row.best_name.c_str(), row.over_plain,
                    row.over_best, row.over_plain < kLeastOverPlain ? " !" : "");
    std::printf("\nauto by plain: %.2f at least, %.2f on average (expected: %.2f at least)\n",
                report.least_over_plain(), report.mean_over_plain(), kLeastOverPlain);
    std::printf("auto by best:  %.2f at least, %.2f on average (expected: %.2f on average)\n", report.least_over_best(),
                report.mean_over_best(), kLeastOverBest);
    std::printf("verdict: %s\n", report.holds() ? "never slower" : "slower somewhere");
    if (report.options.n_repetitions < kLeastAlternations)
        std::printf("         (of too few alternations to trust: -r %u or more)\n", kLeastAlternations);
}

void print_json(const NeverSlowerReport& report) {
    Json rows = Json::array();
    for (const NeverSlowerRow& row : report.rows)
        rows.push_back({{"pair", row.pair},
                        {"prompt", row.kind},
                        {"temperature", row.temperature},
                        {"plain_per_second", row.plain},
                        {"auto_per_second", row.automatic},
                        {"best_per_second", row.best},
                        {"best", row.best_name},
                        {"auto_over_plain", row.over_plain},
                        {"auto_over_best", row.over_best},
                        {"choice", or_null(row.choice)}});
    print({{"schema", kSchema},
           {"device", device_json(report.engine)},
           {"model", models_json(report.options.models)},
           {"predicted_n", report.options.n_predict},
           {"repetitions", report.options.n_repetitions},
           {"results", rows},
           {"least_over_plain", report.least_over_plain()},
           {"mean_over_plain", report.mean_over_plain()},
           {"least_over_best", report.least_over_best()},
           {"mean_over_best", report.mean_over_best()},
           {"holds", report.holds()}});
}

} // namespace auspex::cli
