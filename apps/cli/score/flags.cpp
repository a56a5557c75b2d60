// Flags of score.
#include "cli/common/input/shared_flags.h"
#include "cli/score/options.h"

namespace auspex::cli {

namespace {

constexpr const char* kScoreNotes = "Log-probabilities are natural logarithms, one for each token given those before\n"
                                    "it; the first has none. nll is the mean of their negatives, perplexity is\n"
                                    "exp(nll). Logits at a position are those of the token after it.\n\n"
                                    "Examples:\n"
                                    "  auspex score -p \"Once upon a time there was a fox.\"\n"
                                    "  auspex score -m llama-3b -f text.txt --quant q4_k\n"
                                    "  auspex score --tokens 1,579,883 --logits 0,-1 --json\n\n";

} // namespace

void declare_score(CLI::App& app, ScoreOptions& options, Shared& shared) {
    add_target(app, shared, kBundledTarget);
    add_quant(app, options.models.target_weights);
    add_prompt(app, options.prompt,
               "Text to score, after BOS if the model asks for it. Without -p, -f and --tokens it is read from stdin");
    add_value(app, "--logits", "0,5,-1", "With --json: the logits at these positions; negative ones count from the end",
              [&options](const std::string& flag, const std::string& text) {
                  options.logits_at = parse_position_list(flag, text);
              });
    add_device(app, options.models);
    app.add_flag("--json", options.json, "One JSON object");
    app.footer(std::string(kScoreNotes) + kExitCodes);
}

void complete(ScoreOptions& options, const Shared& shared) {
    check_paths(shared);
    check_prompt(options.prompt);
    check_device(options.models);
    if (!options.logits_at.empty() && !options.json) throw Failure(kExitUsage, "--logits: expected --json too");
    options.models.target = shared.target ? *shared.target : bundled_model("target");
}

} // namespace auspex::cli
