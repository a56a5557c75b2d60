// Tables to text.
#include "cli/bench/output/table.h"

namespace auspex::cli {

namespace {

std::string shown(const TableCell& value, int decimals) {
    return value.number ? format("%.*f", decimals, *value.number) : value.text;
}

} // namespace

std::string as_markdown(const Table& table) {
    std::string text = "**" + table.title + "**";
    if (!table.note.empty()) text += " " + table.note;
    text += "\n\n|";
    for (const TableColumn& column : table.columns)
        text += " " + column.title + " |";
    text += "\n|";
    for (size_t i = 0; i < table.columns.size(); ++i)
        text += i == 0 ? "---|" : "---:|";
    text += "\n";
    for (const std::vector<TableCell>& row : table.rows) {
        text += "|";
        for (size_t i = 0; i < row.size(); ++i)
            text += " " + shown(row[i], table.columns[i].decimals) + " |";
        text += "\n";
    }
    return text;
}

std::string as_csv(const Table& table) {
    std::string text = "table";
    for (const TableColumn& column : table.columns)
        text += "," + column.key;
    text += "\n";
    for (const std::vector<TableCell>& row : table.rows) {
        text += table.key;
        for (size_t i = 0; i < row.size(); ++i)
            text += "," + shown(row[i], table.columns[i].decimals == 0 ? 0 : 6);
        text += "\n";
    }
    return text;
}

} // namespace auspex::cli
