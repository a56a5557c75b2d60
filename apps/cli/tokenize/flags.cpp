// Flags of tokenize.
#include "cli/common/input/shared_flags.h"
#include "cli/tokenize/options.h"

namespace auspex::cli {

namespace {

constexpr const char* kTokenizeNotes =
    "In pieces, bytes that are no whole character by themselves are written <0xHH>.\n\n"
    "Examples:\n"
    "  auspex tokenize -p \"Once upon a time\"\n"
    "  auspex tokenize -m llama-3b --json -f prompt.txt\n"
    "  auspex tokenize --detokenize --tokens 579,883,264\n\n";

} // namespace

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

void complete(TokenizeOptions& options, const Shared& shared) {
    check_paths(shared);
    check_prompt(options.prompt);
    if (!options.is_reverse && !options.prompt.tokens.empty())
        throw Failure(kExitUsage, "--tokens: expected --detokenize too");
    if (options.is_reverse && options.add_bos)
        throw Failure(kExitUsage, "--detokenize: --bos is about text to tokens; leave it out");
    options.model = shared.target ? *shared.target : bundled_model("target");
}

} // namespace auspex::cli
