// auspex quantize: a model as one GGUF file, its matrices in another type.
#include "cli/common/engine/client.h"
#include "cli/common/output/progress_bar.h"
#include "cli/common/system/terminal.h"
#include "cli/quantize/options.h"

#include <cstdio>

namespace auspex::cli {

namespace {

std::string described(const auspex_model_info& model) {
    return format("%s of weights (%s)", format_bytes(model.weights_bytes).c_str(), model.dtype);
}

// Before minutes of work: what would be lost or cannot be written.
void check_output(const QuantizeOptions& options) {
    if (is_folder(options.output))
        throw Failure(kExitFile, options.output + ": expected the name of a file to write, found a folder");
    if (!exists(options.output)) return;
    if (is_same_file(options.input, options.output))
        throw Failure(kExitUsage, options.output + ": input and output are the same file; name another output");
    if (!options.may_overwrite)
        throw Failure(kExitUsage, options.output + ": the file exists; overwrite it with --force");
}

} // namespace

int quantize(const QuantizeOptions& options) {
    const auspex_model_info before = describe_model(options.input, AUSPEX_CACHE_F16);
    check_output(options);
    LibraryLog log;
    {
        ProgressBar progress("quantizing");
        const auspex_status status =
            auspex_quantize_model(options.input.c_str(), options.output.c_str(), *options.type, ProgressBar::callback,
                                  &progress, LibraryLog::callback, &log);
        if (status < 0) throw Failure(exit_code_of(status), log.error_line(status));
    }
    const auspex_model_info after = describe_model(options.output, AUSPEX_CACHE_F16);
    std::fprintf(stderr, "%s: %s\n", options.input.c_str(), described(before).c_str());
    std::fprintf(stderr, "%s: %s, %.0f %% of before\n", options.output.c_str(), described(after).c_str(),
                 100.0 * static_cast<double>(after.weights_bytes) / static_cast<double>(before.weights_bytes));
    return kExitOk;
}

} // namespace auspex::cli
