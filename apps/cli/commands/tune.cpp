// auspex tune: measures the device for the weight types of a pair of models and keeps what was found.
#include "cli/client.h"
#include "cli/output/report.h"

namespace auspex::cli {

int tune(const TuneOptions& options) {
    TuneReport report;
    report.tuning = tune_device(options.models, report.candidates);
    if (options.json)
        print_json(report);
    else
        print_listing(report);
    return kExitOk;
}

} // namespace auspex::cli
