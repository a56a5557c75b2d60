// Flags of tune.
#include "cli/common/input/shapes.h"
#include "cli/common/input/shared_flags.h"
#include "cli/tune/options.h"

namespace auspex::cli {

namespace {

constexpr const char* kTuneNotes =
    "Compares passes of different row counts bit by bit, then times sizes that change no\n"
    "bit, for about 20 seconds, with matrices of random numbers in the models' shapes and\n"
    "types. What wins by more than 3 % is kept for this device, driver, build, these\n"
    "types and widths of models. Times are of a pass of 1 row and one of 5 through a\n"
    "feed-forward matrix; of tiles, through that row count; of the vocabulary, of one\n"
    "truncation. Leave the device to it meanwhile. That prompts use matrix units, where\n"
    "that is a choice, changes bits: what was chosen stays, until its tuning.json is gone.\n"
    "Whether drafts round x to 8 bits, where a device multiplies four bytes at once,\n"
    "changes drafts; with --acceptance rejection a seed then tells another text.\n\n"
    "Examples:\n"
    "  auspex tune\n"
    "  auspex tune -m llama-3b.gguf -md llama-1b.gguf --draft-quant q4_0 --device 1\n"
    "  auspex tune --shape llama-3.2-3b --self-quant q4_0\n\n";

} // namespace

void declare_tune(CLI::App& app, TuneOptions& options, Shared& shared) {
    add_models(app, shared, options.models, kBundledPair);
    add_shapes(app, options.shapes);
    add_device_name(app, options.models);
    app.add_flag("--json", options.json, "One JSON object instead of the table");
    app.footer(std::string(kTuneNotes) + kExitCodes);
}

void complete(TuneOptions& options, const Shared& shared) {
    choose_models(shared, DraftNeed{}, options.shapes.target.has_value(), options.shapes.draft.has_value(), options.models);
}

} // namespace auspex::cli
