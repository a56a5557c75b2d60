// Flags of the commands that look at devices, models and text: info, tokenize, score, quantize.
#include "cli/command_line/flags.h"

namespace auspex::cli {

namespace {

constexpr const char* kTokenizeNotes =
    "In pieces, bytes that are no whole character by themselves are written <0xHH>.\n\n"
    "Examples:\n"
    "  auspex tokenize -p \"Once upon a time\"\n"
    "  auspex tokenize -m llama-3b --json -f prompt.txt\n"
    "  auspex tokenize --detokenize --tokens 579,883,264\n\n";

constexpr const char* kScoreNotes = "Log-probabilities are natural logarithms, one for each token given those before\n"
                                    "it; the first has none. nll is the mean of their negatives, perplexity is\n"
                                    "exp(nll). Logits at a position are those of the token behind it.\n\n"
                                    "Examples:\n"
                                    "  auspex score -p \"Once upon a time there was a fox.\"\n"
                                    "  auspex score -m llama-3b -f text.txt --quant q4_k\n"
                                    "  auspex score --tokens 1,579,883 --logits 0,-1 --json\n\n";

constexpr const char* kQuantizeNotes = "Examples:\n"
                                       "  auspex quantize llama-3b llama-3b-q4_k.gguf --type q4_k\n"
                                       "  auspex quantize model.gguf smaller.gguf --type q8_0 --force\n\n";

} // namespace

void declare_info(CLI::App& app, InfoOptions& options, Shared& shared) {
    add_models(app, shared, options.models, "it is described too, with the memory it would take");
    add_device(app, options.models);
    app.add_flag("--json", options.json, "One JSON object");
    app.footer(kExitCodes);
}

void declare_tokenize(CLI::App& app, TokenizeOptions& options, Shared& shared) {
    add_target(app, shared, std::string("it may lack its weights; ") + kBundledTarget);
    add_prompt(app, options.prompt, "Text. Without -p, -f and --tokens it is read from stdin");
    app.add_flag("--special", options.parse_control_tokens,
                 "Control tokens spelled in the text become those tokens; with --detokenize, those tokens their text");
    app.add_flag("--bos", options.add_bos, "Begin with BOS if the model asks for it");
    app.add_flag("--detokenize", options.is_reverse,
                 "Token ids to text. Ids come from --tokens, or from -p, -f or stdin, separated by commas or spaces");
    app.add_flag("--json", options.json, "One JSON object");
    app.footer(std::string(kTokenizeNotes) + kExitCodes);
}

void declare_score(CLI::App& app, ScoreOptions& options, Shared& shared) {
    add_target(app, shared, kBundledTarget);
    add_quant(app, options.models.target_weights);
    add_prompt(app, options.prompt,
               "Text to score, behind BOS if the model asks for it. Without -p, -f and --tokens it is read from stdin");
    add_value(app, "--logits", "0,5,-1", "With --json: the logits at these positions; negative ones count from the end",
              [&options](const std::string& flag, const std::string& text) {
                  options.logits_at = parse_position_list(flag, text);
              });
    add_device(app, options.models);
    app.add_flag("--json", options.json, "One JSON object");
    app.footer(std::string(kScoreNotes) + kExitCodes);
}

void declare_quantize(CLI::App& app, QuantizeOptions& options) {
    app.add_option("IN", options.input, "Model: a GGUF file or a Hugging Face folder");
    app.add_option("OUT", options.output, "GGUF file to write");
    std::vector<std::pair<std::string, std::optional<auspex_weight_type>>> types;
    for (const auto& [name, type] : weight_types())
        types.emplace_back(name, type);
    add_choice<std::optional<auspex_weight_type>>(
        app, "--type", "TYPE",
        "Type of the matrices: q8_0, q6_k, q4_k, q4_0, f16, bf16 or as-is; never more bits than they have",
        options.type, types);
    app.add_flag("-y,--force", options.may_overwrite, "Overwrite OUT if it exists");
    app.footer(std::string(kQuantizeNotes) + kExitCodes);
}

void complete(InfoOptions& options, const Shared& shared) {
    check_paths(shared);
    check_device(options.models);
    options.models.target = shared.target.value_or("");
    options.models.draft = shared.draft.value_or("");
}

void complete(TokenizeOptions& options, const Shared& shared) {
    check_paths(shared);
    check_prompt(options.prompt);
    if (!options.is_reverse && !options.prompt.tokens.empty())
        throw Failure(kExitUsage, "--tokens: expected --detokenize too");
    if (options.is_reverse && options.add_bos)
        throw Failure(kExitUsage, "--detokenize: --bos is about text to tokens; leave it out");
    options.model = shared.target ? *shared.target : bundled_model("target");
}

void complete(ScoreOptions& options, const Shared& shared) {
    check_paths(shared);
    check_prompt(options.prompt);
    check_device(options.models);
    if (!options.logits_at.empty() && !options.json) throw Failure(kExitUsage, "--logits: expected --json too");
    options.models.target = shared.target ? *shared.target : bundled_model("target");
}

void complete(const QuantizeOptions& options) {
    if (options.input.empty() || options.output.empty())
        throw Failure(kExitUsage, "quantize: expected a model and the GGUF file to write "
                                  "(auspex quantize IN OUT --type TYPE)");
    if (!options.type) throw Failure(kExitUsage, "--type: expected the type to write, e.g. --type q4_k");
}

} // namespace auspex::cli
