// Tables as Markdown, CSV or JSON, for what is read by people and by programs alike.
#pragma once

#include "cli/bench/options.h"

namespace auspex::cli {

struct TableColumn {
    std::string key;   // in CSV and JSON
    std::string title; // in Markdown
    int decimals = 2;
};

// Text, a number, or nothing: an empty cell, null in JSON.
struct TableCell {
    TableCell(const std::string& words) : text(words) {}
    TableCell(double value) : number(value) {}
    TableCell(std::optional<double> value) : number(value) {}

    std::string text;
    std::optional<double> number;
};

struct Table {
    std::string key, title;
    std::string note; // Markdown only; "" for none
    std::vector<TableColumn> columns{};
    std::vector<std::vector<TableCell>> rows{}; // a cell for each column
};

std::string as_markdown(const Table& table);
std::string as_csv(const Table& table); // one block with a first column "table", so that blocks can be joined

// All of them on stdout, in the format that was asked for.
void print_tables(const auspex_engine_info& engine, const BenchOptions& options, const std::vector<Table>& tables);

} // namespace auspex::cli
