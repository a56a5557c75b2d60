// The studies of auspex bench as JSON, and tables in whatever format was asked for.
#include "cli/output/json.h"
#include "cli/output/never_slower_report.h"
#include "cli/output/tables.h"

#include <cstdio>

namespace auspex::cli {

namespace {

Json cell_json(const TableCell& value) {
    return value.number ? Json(*value.number) : or_null(value.text);
}

Json models_json(const ModelOptions& models) {
    return {{"target", or_null(models.target)}, {"draft", or_null(models.draft)}};
}

} // namespace

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

void print_tables(const auspex_engine_info& engine, const BenchOptions& options, const std::vector<Table>& tables) {
    if (options.format != TableFormat::json) {
        for (const Table& table : tables)
            std::printf("%s\n", (options.format == TableFormat::csv ? as_csv(table) : as_markdown(table)).c_str());
        return;
    }
    Json all = Json::object();
    for (const Table& table : tables) {
        Json& rows = all[table.key] = Json::array();
        for (const std::vector<TableCell>& row : table.rows) {
            Json& object = rows.emplace_back(Json::object());
            for (size_t i = 0; i < row.size(); ++i)
                object[table.columns[i].key] = cell_json(row[i]);
        }
    }
    print({{"schema", kSchema},
           {"device", device_json(engine)},
           {"model", models_json(options.models)},
           {"predicted_n", options.n_predict},
           {"repetitions", options.n_repetitions},
           {"seed", options.seed},
           {"tables", all}});
}

} // namespace auspex::cli
