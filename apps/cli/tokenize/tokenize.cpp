// auspex tokenize: text to token ids by a model's own vocabulary, and back.
#include "cli/common/input/prompt.h"
#include "cli/common/output/print_report.h"
#include "cli/common/output/standard_output.h"
#include "cli/common/output/story_printer.h"
#include "cli/common/system/terminal.h"
#include "cli/tokenize/report.h"

#include <cstdio>

namespace auspex::cli {

namespace {

int detokenize(const TokenizeOptions& options) {
    std::string source = "--tokens";
    std::vector<uint32_t> ids = options.prompt.tokens;
    if (ids.empty()) {
        const PromptText prompt = read_prompt(options.prompt);
        source = prompt.source;
        ids = parse_ids(source, prompt.text);
    }
    const Tokenizer tokenizer(options.model);
    check_ids(ids, source, tokenizer.vocab_size());
    const std::string text = options.parse_control_tokens ? tokenizer.decode_with_controls(ids) : tokenizer.decode(ids);
    if (options.json) {
        print_text_json(text);
    } else {
        const std::string shown = is_terminal(Stream::output) ? without_control_characters(text) : text;
        print_text(shown);
        if (!shown.ends_with('\n')) std::fputc('\n', stdout);
    }
    return kExitOk;
}

} // namespace

int tokenize(const TokenizeOptions& options) {
    if (options.is_reverse) return detokenize(options);
    const PromptText prompt = read_prompt(options.prompt);
    check_text(prompt);
    const Tokenizer tokenizer(options.model);
    TokenizeReport report;
    report.ids = tokenizer.encode(prompt.text, options.add_bos, options.parse_control_tokens);
    for (const uint32_t id : report.ids)
        report.pieces.push_back(tokenizer.piece(id));
    print_report(report, options.json);
    return kExitOk;
}

} // namespace auspex::cli
