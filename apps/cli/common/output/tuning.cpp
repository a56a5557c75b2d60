// Tells the sizes, who chose them, and whether row counts agree.
#include "cli/common/output/tuning.h"

#include <cstdio>

namespace auspex::cli {

namespace {

const char* agreement(const auspex_tuning_report& report) {
    if (report.rows_agree > 0) return "bit by bit the same";
    return report.rows_agree == 0 ? "NOT the same: every pass runs through tiles of one row count"
                                  : "not compared yet (auspex tune)";
}

} // namespace

void print_tuning(const auspex_tuning_report& report) {
    std::printf("tuning of %s\n", report.device_name);
    const char* label = "sizes"; // a line for each
    for (std::string sizes = report.sizes; !sizes.empty(); label = "") {
        const size_t end = sizes.find("; ");
        std::printf("  %-18s %s\n", label, sizes.substr(0, end).c_str());
        sizes = end == std::string::npos ? "" : sizes.substr(end + 2);
    }
    std::printf("  %-18s %s\n", "chosen by",
                report.is_timed != 0 ? "timing on this device" : "what the device says of itself");
    std::printf("  %-18s %s\n", "row counts", agreement(report));
    if (report.difference[0] != '\0') std::printf("  %-18s %s\n", "difference", report.difference);
    std::printf("  %-18s %s\n", "numerics", report.numerics_id);
}

Json tuning_json(const auspex_tuning_report& report) {
    return {{"device", report.device_name},
            {"driver", report.driver},
            {"numerics_id", report.numerics_id},
            {"sizes", report.sizes},
            {"rows_agree", report.rows_agree < 0 ? Json() : Json(report.rows_agree > 0)},
            {"difference", or_null(report.difference)},
            {"timed", report.is_timed != 0},
            {"kept", report.is_kept != 0}};
}

} // namespace auspex::cli
