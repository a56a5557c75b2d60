// What was measured to choose sizes, as a table and as JSON.
#include "cli/common/output/tuning.h"
#include "cli/tune/report.h"

#include <cstdio>

namespace auspex::cli {

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
