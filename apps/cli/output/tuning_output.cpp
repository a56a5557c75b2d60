// The sizes an engine runs with, and what was measured to choose them: tables and JSON.
#include "cli/output/json.h"
#include "cli/output/report.h"

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

void print_listing(const TuneReport& report) {
    if (!report.candidates.empty())
        std::printf("%-24s %12s %12s  \n", "size", "candidate", "ms");
    std::string knob;
    for (const TuningCandidate& c : report.candidates) {
        std::printf("%-24s %12s %12s  %s%s\n", c.knob == knob ? "" : c.knob.c_str(), c.candidate.c_str(),
                    c.ms < 0 ? "-" : format("%.4f", c.ms).c_str(), c.is_chosen ? "chosen" : "",
                    c.is_default ? (c.is_chosen ? ", as before" : "as before") : "");
        knob = c.knob;
    }
    if (report.candidates.empty()) std::printf("this device has no timestamps: nothing was timed\n");
    if (report.tuning.is_complete == 0) std::printf("time ran out before everything was measured\n");
    std::printf("\n");
    print_tuning(report.tuning);
    if (report.tuning.is_kept == 0) std::printf("this could not be kept: the next run does not know of it\n");
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

void print_json(const TuneReport& report) {
    Json candidates = Json::array();
    for (const TuningCandidate& c : report.candidates)
        candidates.push_back({{"knob", c.knob},
                              {"candidate", c.candidate},
                              {"ms", c.ms < 0 ? Json() : Json(c.ms)},
                              {"default", c.is_default},
                              {"chosen", c.is_chosen}});
    print({{"schema", kSchema},
           {"tuning", tuning_json(report.tuning)},
           {"complete", report.tuning.is_complete != 0},
           {"candidates", candidates}});
}

} // namespace auspex::cli
