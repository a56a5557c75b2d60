// Flags of selftest.
#include "cli/common/input/shared_flags.h"
#include "cli/selftest/options.h"

namespace auspex::cli {

namespace {

constexpr const char* kSelftestNotes = "Checks on your device, with models of random weights and with your files, that\n"
                               "texts with drafts are those without:\n"
                               "  sampling          counts of completions against their exact probabilities\n"
                               "  sampling-control  the same with an error made on purpose, which must be seen\n"
                               "  sampling-host     the same with drafts from outside, some of them absurd\n"
                               "  ties              greedy texts where several tokens are equally probable\n"
                               "  full-accept       a draft model that is the target: every draft is right\n"
                               "  full-reject       drafts that are all wrong\n"
                               "  coupled           sampled texts, token for token, by shared noise\n"
                               "  pair-greedy, pair-coupled  your files (default: the bundled pair)\n"
                               "When a check fails the exit code is 1. Half a minute; a device on which all draws\n"
                               "would take longer than 150 s gets fewer and shorter texts, and says so.\n\n"
                               "Examples:\n"
                               "  auspex selftest\n"
                               "  auspex selftest -m llama-3b.gguf -md llama-1b.gguf --device 1 --json\n\n";

} // namespace

void declare_selftest(CLI::App& app, SelftestOptions& options, Shared& shared) {
    add_models(app, shared, options.models, kBundledPair);
    add_device_name(app, options.models);
    add_cache_type(app, options.models.cache_type);
    app.add_flag("--json", options.json, "One JSON object instead of the lines");
    add_value(app, "--seconds-for-draws", "N", "", [&options](const std::string& flag, const std::string& text) {
        options.seconds_for_draws = parse_number(flag, text, 0.0, 1e9);
    });
    app.get_option("--seconds-for-draws")->group(""); // for tests: --help does not list it
    app.footer(std::string(kSelftestNotes) + kExitCodes);
}

void complete(SelftestOptions& options, const Shared& shared) {
    choose_models(shared, DraftNeed{}, false, false, options.models);
}

} // namespace auspex::cli
