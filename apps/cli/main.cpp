// Chooses the command and turns failures into one line on stderr and an exit code.
#include "cli/command_line.h"
#include "cli/common/output/standard_output.h"
#include "cli/common/system/terminal.h"

#include <cstdio>
#include <exception>
#include <new>

namespace {

using namespace auspex::cli;

int print_notice(const Notice& notice) {
    print_text(notice.text);
    return kExitOk;
}

int report_failure(int exit_code, const char* message) {
    flush_output();
    std::fprintf(stderr, "auspex: %s\n", as_one_line(message).c_str());
    return exit_code;
}

int run_command(const Command& command) {
    struct Run {
        int operator()(const Notice& notice) const { return print_notice(notice); }
        int operator()(const RunOptions& options) const { return run(options); }
        int operator()(const ChatOptions& options) const { return chat(options); }
        int operator()(const BatchOptions& options) const { return batch(options); }
#if AUSPEX_HAS_SERVER
        int operator()(const ServeOptions& options) const { return serve(options); }
#endif
        int operator()(const BenchOptions& options) const { return bench(options); }
        int operator()(const InfoOptions& options) const { return info(options); }
        int operator()(const TokenizeOptions& options) const { return tokenize(options); }
        int operator()(const ScoreOptions& options) const { return score(options); }
        int operator()(const QuantizeOptions& options) const { return quantize(options); }
        int operator()(const SelftestOptions& options) const { return selftest(options); }
        int operator()(const TuneOptions& options) const { return tune(options); }
    };
    return std::visit(Run{}, command);
}

} // namespace

int main(int argc, char** argv) {
    try {
        const Command command = parse_command_line(prepare_console(argc, argv));
        keep_drivers_off_a_full_disk();
        const int exit_code = run_command(command);
        if (const std::string failure = output_failure(); !failure.empty())
            return report_failure(kExitInternal, ("stdout: " + failure).c_str());
        return exit_code;
    } catch (const Failure& failure) {
        return report_failure(failure.exit_code(), failure.what());
    } catch (const std::bad_alloc&) {
        return report_failure(kExitDevice, "out of host memory");
    } catch (const std::exception& error) {
        return report_failure(kExitInternal, error.what());
    }
}
