// Speed as tables for people, as JSON and as rows for programs.
#include "cli/bench/output/speed_report.h"

#include "cli/common/output/json.h"

#include <cstdio>

namespace auspex::cli {

namespace {

std::string cell(std::optional<double> value, int decimals) {
    return value ? format("%.*f", decimals, *value) : "";
}

std::optional<double> if_known(double value) {
    return value >= 0.0 ? std::optional(value) : std::nullopt;
}

std::string depth_text(uint32_t depth) {
    return depth > 0 ? format(" @ d%u", depth) : "";
}

} // namespace

std::string PassRow::name() const {
    return std::string(of_draft ? "draft" : "target") + (is_prompt ? format(" p%u", n_rows) : n_rows > 1 ? format(" v(%u)", n_rows) : "");
}

const PassRow* SpeedReport::find_pass(bool of_draft, uint32_t n_rows, uint32_t depth) const {
    for (const PassRow& row : passes)
        if (!row.is_prompt && row.of_draft == of_draft && row.n_rows == n_rows && row.depth == depth) return &row;
    return nullptr;
}

void print_throughput(const SpeedReport& report) {
    if (report.throughput.empty()) return;
    std::printf("%-15s %9s %7s %8s %7s %7s %7s %12s\n", "test", "tok/s", "stddev", "GB/s", "floor", "TFLOPS", "CPU us",
                "1st token ms");
    for (const ThroughputRow& row : report.throughput)
        std::printf("%-15s %9.2f %7.2f %8s %7s %7s %7s %12s\n", (row.test + depth_text(row.depth)).c_str(),
                    row.tokens_per_second, row.stddev, cell(row.gb_per_second, 2).c_str(),
                    row.floor_percent ? format("%.1f %%", *row.floor_percent).c_str() : "", cell(row.tflops, 2).c_str(),
                    cell(row.cpu_us_per_round, 0).c_str(), cell(row.first_token_ms, 1).c_str());
    for (const ThroughputRow& row : report.throughput)
        if (row.peak_percent) std::printf("%s: %.1f %% of the matrix peak that was given\n", row.test.c_str(), *row.peak_percent);
    std::printf("CPU us: of this thread, per round. floor: bytes read (weights, keys, values)\n"
                "at the speed of a copy, which counts what it reads and what it writes.\n\n");
}

void print_passes(const SpeedReport& report) {
    if (report.passes.empty()) return;
    std::printf("%-15s %9s %9s %6s %8s %7s %7s %9s\n", "pass", "GPU ms", "wall ms", "v(n)", "GB/s", "floor", "stages",
                "barriers");
    for (const PassRow& row : report.passes)
        std::printf("%-15s %9s %9.3f %6s %8s %7s %7u %9u\n", (row.name() + depth_text(row.depth)).c_str(),
                    cell(if_known(row.times.gpu_ms), 3).c_str(), row.times.wall_ms, cell(row.v, 2).c_str(),
                    cell(row.gb_per_second, 2).c_str(),
                    row.floor_percent ? format("%.1f %%", *row.floor_percent).c_str() : "", row.times.n_dispatches,
                    row.times.n_barriers);
    if (report.copy.bytes > 0)
        std::printf("%-15s %9.3f %9s %6s %8.2f         %s\n", "copy", report.copy.ms, "", "", report.copy.gb_per_second,
                    (format_bytes(report.copy.bytes / 2) + " there").c_str());
    for (const PassRow& row : report.passes) {
        if (row.times.n_stages == 0) continue;
        double sum = 0.0;
        for (uint32_t i = 0; i < row.times.n_stages; ++i)
            sum += row.times.stages[i].ms;
        std::printf("\n%-24s %5s %9s %7s   %s\n", (row.name() + depth_text(row.depth)).c_str(), "count", "GPU ms", "",
                    "each us");
        for (uint32_t i = 0; i < row.times.n_stages; ++i) {
            const auspex_stage_time& stage = row.times.stages[i];
            std::printf("  %-22s %5u %9.3f %5.1f %%   %7.1f\n", stage.name, stage.count, stage.ms,
                        sum > 0.0 ? 100.0 * stage.ms / sum : 0.0, stage.count > 0 ? 1e3 * stage.ms / stage.count : 0.0);
        }
        std::printf("  %-22s %5s %9.3f           with a timestamp around each\n", "sum", "", sum);
    }
    std::printf("\n");
}

void add_json(const SpeedReport& report, Json& json) {
    Json throughput = Json::array(), passes = Json::array();
    for (const ThroughputRow& row : report.throughput)
        throughput.push_back({{"test", row.test},
                              {"n_prompt", row.n_prompt},
                              {"n_gen", row.n_generated},
                              {"depth", row.depth},
                              {"tokens_per_second", row.tokens_per_second},
                              {"stddev", row.stddev},
                              {"samples", row.samples},
                              {"first_token_ms", or_null(row.first_token_ms)},
                              {"round_ms", or_null(row.round_ms)},
                              {"cpu_us_per_round", or_null(row.cpu_us_per_round)},
                              {"gb_per_second", or_null(row.gb_per_second)},
                              {"floor_percent", or_null(row.floor_percent)},
                              {"tflops", or_null(row.tflops)},
                              {"peak_percent", or_null(row.peak_percent)}});
    for (const PassRow& row : report.passes) {
        Json stages = Json::array();
        for (uint32_t i = 0; i < row.times.n_stages; ++i)
            stages.push_back({{"name", row.times.stages[i].name},
                              {"count", row.times.stages[i].count},
                              {"ms", row.times.stages[i].ms}});
        passes.push_back({{"model", row.of_draft ? "draft" : "target"},
                          {"rows", row.n_rows},
                          {"is_prompt", row.is_prompt},
                          {"depth", row.depth},
                          {"gpu_ms", or_null(if_known(row.times.gpu_ms))},
                          {"least_ms", or_null(if_known(row.times.least_ms))},
                          {"most_ms", or_null(if_known(row.times.most_ms))},
                          {"wall_ms", row.times.wall_ms},
                          {"v", or_null(row.v)},
                          {"dispatches", row.times.n_dispatches},
                          {"barriers", row.times.n_barriers},
                          {"weights_bytes", row.times.weights_bytes},
                          {"cache_bytes", row.times.cache_bytes},
                          {"flops", row.times.flops},
                          {"gb_per_second", or_null(row.gb_per_second)},
                          {"floor_percent", or_null(row.floor_percent)},
                          {"stages", stages}});
    }
    json["throughput"] = throughput;
    json["passes"] = passes;
    json["copy"] = report.copy.bytes == 0 ? Json()
                                          : Json{{"bytes", report.copy.bytes}, // read and written
                                                 {"ms", report.copy.ms},
                                                 {"gb_per_second", report.copy.gb_per_second}};
}

std::vector<Table> as_tables(const SpeedReport& report) {
    Table throughput{"throughput",
                     "Throughput",
                     "",
                     {{"test", "test"},
                      {"n_prompt", "n_prompt", 0},
                      {"n_gen", "n_gen", 0},
                      {"depth", "depth", 0},
                      {"tokens_per_second", "tok/s"},
                      {"stddev", "stddev"},
                      {"first_token_ms", "first token ms", 1},
                      {"round_ms", "round ms", 3},
                      {"cpu_us_per_round", "CPU µs per round", 0},
                      {"gb_per_second", "GB/s"},
                      {"floor_percent", "% of copy", 1},
                      {"tflops", "TFLOPS"},
                      {"peak_percent", "% of peak", 1}}};
    for (const ThroughputRow& row : report.throughput)
        throughput.rows.push_back({row.test, double(row.n_prompt), double(row.n_generated), double(row.depth),
                                   row.tokens_per_second, row.stddev, row.first_token_ms, row.round_ms,
                                   row.cpu_us_per_round, row.gb_per_second, row.floor_percent, row.tflops,
                                   row.peak_percent});
    Table passes{"passes",
                 "Passes",
                 "",
                 {{"model", "model"},
                  {"rows", "rows", 0},
                  {"depth", "depth", 0},
                  {"gpu_ms", "GPU ms", 3},
                  {"wall_ms", "wall ms", 3},
                  {"v", "v(n)"},
                  {"dispatches", "dispatches", 0},
                  {"barriers", "barriers", 0},
                  {"weights_bytes", "weights bytes", 0},
                  {"cache_bytes", "cache bytes", 0},
                  {"gb_per_second", "GB/s"},
                  {"floor_percent", "% of copy", 1}}};
    Table stages{"stages",
                 "Stages",
                 "",
                 {{"model", "model"},
                  {"rows", "rows", 0},
                  {"depth", "depth", 0},
                  {"stage", "stage"},
                  {"count", "count", 0},
                  {"ms", "GPU ms", 3}}};
    for (const PassRow& row : report.passes) {
        const std::string model = std::string(row.of_draft ? "draft" : "target") + (row.is_prompt ? " prompt" : "");
        passes.rows.push_back({model, double(row.n_rows), double(row.depth), if_known(row.times.gpu_ms), row.times.wall_ms,
                               row.v, double(row.times.n_dispatches), double(row.times.n_barriers),
                               double(row.times.weights_bytes), double(row.times.cache_bytes), row.gb_per_second,
                               row.floor_percent});
        for (uint32_t i = 0; i < row.times.n_stages; ++i)
            stages.rows.push_back({model, double(row.n_rows), double(row.depth), std::string(row.times.stages[i].name),
                                   double(row.times.stages[i].count), row.times.stages[i].ms});
    }
    Table copy{"copy",
               "Copy",
               "bytes read and written, both counted",
               {{"bytes", "bytes", 0}, {"ms", "ms", 3}, {"gb_per_second", "GB/s"}}};
    if (report.copy.bytes > 0)
        copy.rows.push_back({double(report.copy.bytes), report.copy.ms, report.copy.gb_per_second});
    std::vector<Table> tables;
    for (Table* table : {&throughput, &passes, &stages, &copy})
        if (!table->rows.empty()) tables.push_back(std::move(*table));
    return tables;
}

} // namespace auspex::cli
