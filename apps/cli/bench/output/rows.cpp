// The comparison as rows for programs, and tables in whatever format was asked for.
#include "cli/bench/output/report.h"
#include "cli/bench/output/table.h"
#include "cli/common/output/json.h"
#include "cli/common/output/standard_output.h"

#include <cmath>

namespace auspex::cli {

namespace {

Json cell_json(const TableCell& value, const TableColumn& column) {
    if (value.number && column.decimals == 0 && *value.number == std::round(*value.number)) return std::llround(*value.number);
    return value.number ? Json(*value.number) : or_null(value.text);
}

} // namespace

void print_rows(const BenchReport& report) {
    std::vector<Table> tables = as_tables(report.speed);
    Table device{"device", "Device", "", {{"device", "device"}, {"driver", "driver"}, {"target", "target"}, {"draft", "draft"}}};
    device.rows.push_back({std::string(report.engine.device_name), std::string(report.engine.driver),
                           report.options.target_text, report.options.draft_text});
    tables.insert(tables.begin(), device);
    Table table{"speculation",
                "Speculation",
                report.options.simulated_alpha ? "acceptance is simulated: the texts mean nothing" : "",
                {{"way", "way"},
                 {"drafter", "drafter"},
                 {"draft_len", "K", 0},
                 {"simulated_alpha", "simulated α"},
                 {"tokens_per_second", "tok/s"},
                 {"stddev", "stddev"},
                 {"acceptance_rate", "accepted", 3},
                 {"tokens_per_round", "tokens per round"},
                 {"speedup", "speed-up"},
                 {"predicted_speedup", "predicted"},
                 {"c", "c"},
                 {"v", "v(K+1)"},
                 {"round_ms", "round ms", 3},
                 {"draft_ms", "draft ms", 3},
                 {"verify_ms", "verify ms", 3},
                 {"accept_ms", "accept ms", 3},
                 {"round_over_passes_gpu", "round / passes, GPU", 3},
                 {"round_over_passes_wall", "round / passes, wall", 3},
                 {"cpu_us_per_round", "CPU µs per round", 0},
                 {"first_token_ms", "first token ms", 1}}};
    for (const BenchResult& result : report.results) {
        const bool chooses_len = result.way.draft_len == AUSPEX_DRAFT_LEN_AUTO;
        table.rows.push_back({result.way.name(), std::string(drafter_name(result.way.drafter)),
                              chooses_len ? std::nullopt : std::optional<double>(result.way.draft_len),
                              report.options.simulated_alpha, result.tokens_per_second, result.stddev,
                              result.acceptance_rate, result.tokens_per_round, result.speedup, result.predicted_speedup,
                              result.c, result.v, result.round_ms, result.draft_ms, result.verify_ms, result.accept_ms,
                              result.round_over_passes_gpu, result.round_over_passes_wall, result.cpu_us_per_round,
                              result.first_token_ms});
    }
    if (!table.rows.empty()) tables.push_back(std::move(table));
    print_tables(report.engine, report.options, tables);
}

void print_tables(const auspex_engine_info& engine, const BenchOptions& options, const std::vector<Table>& tables) {
    const TableFormat wanted = options.format.value_or(TableFormat::markdown);
    if (wanted == TableFormat::markdown || wanted == TableFormat::csv) {
        for (const Table& table : tables)
            print_text((wanted == TableFormat::csv ? as_csv(table) : as_markdown(table)) + "\n");
        return;
    }
    Json all = Json::object();
    for (const Table& table : tables) {
        Json& rows = all[table.key] = Json::array();
        for (const std::vector<TableCell>& row : table.rows) {
            Json object = wanted == TableFormat::json_lines ? Json{{"table", table.key}} : Json::object();
            for (size_t i = 0; i < row.size(); ++i)
                object[table.columns[i].key] = cell_json(row[i], table.columns[i]);
            if (wanted == TableFormat::json_lines) print(object);
            rows.push_back(std::move(object));
        }
    }
    if (wanted == TableFormat::json_lines) return;
    print({{"schema", kSchema},
           {"device", device_json(engine)},
           {"model", models_json(options.models)},
           {"predicted_n", options.n_predict},
           {"repetitions", options.n_repetitions},
           {"seed", options.seed},
           {"tables", all}});
}

} // namespace auspex::cli
