// Flags of batch.
#include "cli/batch/options.h"
#include "cli/common/input/shared_flags.h"

namespace auspex::cli {

namespace {

constexpr uint32_t kMostParallel = 256;

constexpr const char* kBatchNotes =
    "Both files have a JSON object per line, as OpenAI's batch interface has them. What\n"
    "already has a result in the output is skipped, so the same command goes on after\n"
    "Ctrl-C, SIGTERM or a crash. At Ctrl-C or SIGTERM requests that run are finished,\n"
    "and the exit code is 75 when lines are left. A second signal ends at once.\n\n"
    "Examples:\n"
    "  auspex batch -i requests.jsonl -o results.jsonl\n"
    "  auspex batch -m llama-3b -md llama-1b -c 2048 -i requests.jsonl -o results.jsonl\n"
    "  auspex batch -i requests.jsonl -o results.2.jsonl --part 2/4\n\n";

Part parse_part(const std::string& flag, const std::string& text) {
    const size_t slash = text.find('/');
    if (slash == std::string::npos)
        throw Failure(kExitUsage, flag + " " + text + ": expected a part and how many there are, as 2/4");
    Part part;
    part.count = parse_whole(flag, text.substr(slash + 1), 1, 1000000);
    part.index = parse_whole(flag, text.substr(0, slash), 1, part.count);
    return part;
}

} // namespace

void declare_batch(CLI::App& app, BatchOptions& options, Shared& shared) {
    begin_group(app, "Files");
    const auto add_path = [&](const char* names, const char* help, std::string& target) {
        add_value(app, names, "FILE", help, [&target](const std::string& flag, const std::string& text) {
            if (text.empty()) throw Failure(kExitUsage, flag + " \"\": expected a file");
            target = text;
        });
    };
    add_path("-i,--input", "Requests, one per line, each with a custom_id of its own", options.input);
    add_path("-o,--output", "Results, one per line, in the order in which they come; those it has are kept",
             options.output);
    add_value(app, "--part", "I/N", "Only every N-th line, from the I-th on; each part needs its own output (1/1)",
              [&options](const std::string& flag, const std::string& text) { options.part = parse_part(flag, text); });
    begin_group(app, "Models and device");
    add_models(app, shared, options.models, kBundledPair);
    add_device(app, options.models);
    add_number(app, "--parallel",
               format("Answers written side by side; each takes a context of memory (%u)", options.parallel),
               options.parallel, 1, kMostParallel);
    begin_group(app, "Conversations");
    add_chat_layout(app, options.template_name);
    add_text(app, "--date", "TEXT", "Date that llama3 tells the model, e.g. \"26 Jul 2024\" (that one)", options.date);
    add_speculation(app, options.sampling, shared);
    end_groups(app);
    app.footer(std::string(kBatchNotes) + kExitCodes);
}

void complete(BatchOptions& options, const Shared& shared) {
    if (options.input.empty()) throw Failure(kExitUsage, "-i: expected a file of requests");
    if (options.output.empty()) throw Failure(kExitUsage, "-o: expected a file for the results");
    choose_models(shared, settle_drafting(options.sampling, shared.no_draft), false, false, options.models);
}

} // namespace auspex::cli
