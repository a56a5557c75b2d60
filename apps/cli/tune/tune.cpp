// auspex tune: measures the device for the weight types of a pair of models and keeps what was found.
#include "cli/common/engine/client.h"
#include "cli/common/output/print_report.h"
#include "cli/tune/report.h"

namespace auspex::cli {

int tune(const TuneOptions& options) {
    TuneReport report;
    report.tuning = tune_device(options.models, report.candidates);
    print_report(report, options.json);
    return kExitOk;
}

} // namespace auspex::cli
