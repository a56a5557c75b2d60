// Any bytes as a text, and as a list of ids, for the bundled SentencePiece vocabulary and a small byte-level BPE one.
#include "fuzz/fuzz_targets.h"
#include "fuzz/memory_files.h"
#include "tokens/chat_template.h"
#include "tokens/open_tokenizer.h"
#include "tokens/text_stream.h"
#include "tokens/utf8.h"

#include <array>

namespace auspex::test {
namespace {

using Vocabularies = std::array<std::unique_ptr<Tokenizer>, 2>; // SentencePiece, BPE

Vocabularies open_vocabularies() {
    const std::string model = real_file(AUSPEX_PAIR_DIR "/target/tokenizer.model");
    const std::string json = real_file(AUSPEX_TEST_DATA "/bpe/tokenizer.json");
    Vocabularies both;
    const std::pair<const char*, std::string_view> files[] = {{"/tokenizer.model", model}, {"/tokenizer.json", json}};
    for (size_t i = 0; i < both.size(); ++i) {
        clear_files();
        put_file(memory_folder() + files[i].first, files[i].second);
        auto opened = open_tokenizer(memory_folder());
        if (!opened.ok()) throw FuzzFailure{opened.status().message()};
        both[i] = std::move(opened).value();
    }
    clear_files();
    return both;
}

void check_controls(const Tokenizer& tokenizer, std::string_view text) {
    const auto ids = tokenizer.encode_with_controls(text);
    if (!ids.ok()) return check_refusal(ids.status());
    std::string shown;
    for (uint32_t id : ids.value()) {
        fuzz_check(id < tokenizer.vocab_size(), "ids with controls are below vocab_size");
        const bool control = tokenizer.control_token(tokenizer.spelling(id)) == id;
        shown += control ? tokenizer.spelling(id) : tokenizer.piece(id);
    }
    // A dummy prefix comes again after each control token.
    if (!tokenizer.has_dummy_prefix()) fuzz_check(shown == with_replacements(text), "controls are their spelling");
}

} // namespace

void fuzz_tokenizer_text(FuzzInput input) {
    static const Vocabularies vocabularies = open_vocabularies();
    const std::string_view text(reinterpret_cast<const char*>(input.data()), input.size());
    for (const auto& tokenizer : vocabularies) {
        check_encoding(*tokenizer, text, tokenizer->has_dummy_prefix() ? Fidelity::spaces : Fidelity::bytes);
        check_controls(*tokenizer, text);
        TextStream stream(*tokenizer, /*at_start=*/true);
        std::string streamed;
        for (size_t i = 0; i + 1 < input.size(); i += 2) // two bytes an id: also beyond the vocabulary
            streamed += stream.push(std::to_integer<uint32_t>(input[i]) | std::to_integer<uint32_t>(input[i + 1]) << 8);
        streamed += stream.finish();
        fuzz_check(valid_utf8(streamed), "any ids make UTF-8");
    }
    if (const auto chat = recognise_chat_template(text))
        fuzz_check(!chat_opening(*chat, {.system = default_system_text(text), .user = std::string(text)}).empty(),
                   "a chat opens with something");
    static_cast<void>(default_system_text(text));
    static_cast<void>(looks_like_tiktoken(text));
}

} // namespace auspex::test
