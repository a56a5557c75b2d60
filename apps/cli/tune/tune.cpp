// auspex tune: measures the device for the weight types of a pair of models and keeps what was found.
#include "cli/common/engine/client.h"
#include "cli/common/input/shapes.h"
#include "cli/common/output/print_report.h"
#include "cli/tune/report.h"

namespace auspex::cli {

int tune(const TuneOptions& options) {
    const auspex_synthetic_models synthetic = synthetic_models(options.shapes);
    Client::Request request = {.models = options.models, .max_draft_len = SamplingOptions().max_draft_len()};
    if (options.shapes.any()) request.synthetic = &synthetic;
    TuneReport report;
    report.tuning = tune_device(request, report.candidates);
    print_report(report, options.json);
    return kExitOk;
}

} // namespace auspex::cli
