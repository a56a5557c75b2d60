// What the targets share: the form of refusals, and everything that a vocabulary is used for.
#include "fuzz/fuzz_targets.h"

#include "tokens/chat_template.h"
#include "tokens/text_stream.h"
#include "tokens/utf8.h"

#include <algorithm>

namespace auspex::test {
namespace {

bool is_control(const Tokenizer& tokenizer, uint32_t id) {
    return tokenizer.control_token(tokenizer.spelling(id)) == id;
}

std::string with_spaces(std::string text) {
    for (size_t at = 0; (at = text.find(kSpaceSymbol, at)) != std::string::npos;)
        text.replace(at, kSpaceSymbol.size(), " ");
    return text;
}

void check_template(const Tokenizer& tokenizer) {
    const std::string system = default_system_text(tokenizer.chat_template());
    const auto chat = recognise_chat_template(tokenizer.chat_template());
    if (!chat) return;
    const auto ids = encode_chat(tokenizer, chat_opening(*chat, {.system = system, .user = " Hello\n"}));
    if (!ids.ok()) return check_refusal(ids.status());
    for (uint32_t id : ids.value())
        fuzz_check(id < tokenizer.vocab_size(), "ids of a chat are below vocab_size");
}

} // namespace

void check_refusal(const Status& status) {
    fuzz_check(!status.ok() && status.code() != Code::internal && status.code() != Code::out_of_host_memory,
               "a refusal has a reason that was foreseen");
    fuzz_check(status.message().size() > 8 && status.message().size() < 2000, "a refusal has 8 to 2000 bytes");
    for (char c : status.message())
        fuzz_check(static_cast<unsigned char>(c) >= ' ' && c != 0x7f, "a refusal is one printable line");
}

double elements_of(std::span<const uint64_t> shape) {
    double elements = 1;
    for (uint64_t dim : shape)
        elements *= static_cast<double>(dim);
    return elements;
}

std::vector<std::string_view> split_files(FuzzInput input) {
    std::string_view rest(reinterpret_cast<const char*>(input.data()), input.size());
    std::vector<std::string_view> files;
    for (size_t end = 0; end != std::string_view::npos;) {
        end = rest.find('\x1e');
        files.push_back(rest.substr(0, end));
        rest.remove_prefix(std::min(rest.size(), end == std::string_view::npos ? end : end + 1));
    }
    return files;
}

void check_encoding(const Tokenizer& tokenizer, std::string_view text, Fidelity fidelity) {
    const auto ids = tokenizer.encode(text);
    if (!ids.ok()) return check_refusal(ids.status());
    std::string joined;
    TextStream stream(tokenizer, /*at_start=*/true);
    std::string streamed;
    for (uint32_t id : ids.value()) {
        fuzz_check(id < tokenizer.vocab_size(), "ids are below vocab_size");
        fuzz_check(!is_control(tokenizer, id), "text never becomes a control token");
        joined += tokenizer.piece(id);
        streamed += stream.push(id);
    }
    streamed += stream.finish();
    fuzz_check(valid_utf8(streamed), "text that comes out is UTF-8");
    if (fidelity == Fidelity::anything) return;
    const std::string repaired = with_replacements(text);
    const std::string expected = fidelity == Fidelity::spaces ? with_spaces(repaired) : repaired;
    fuzz_check(streamed == expected, "what goes in comes out");
    fuzz_check(joined == (tokenizer.has_dummy_prefix() && !text.empty() ? " " : "") + expected, "pieces are the text");
}

void use_tokenizer(const Tokenizer& tokenizer, Fidelity fidelity) {
    const uint32_t n = tokenizer.vocab_size();
    fuzz_check(n > 0 && (!tokenizer.add_bos() || tokenizer.bos_id() < n), "BOS is a token");
    const auto& ends = tokenizer.end_ids();
    fuzz_check(std::is_sorted(ends.begin(), ends.end()) && (ends.empty() || ends.back() < n), "end ids are tokens");
    check_encoding(tokenizer, "Once upon a time <s>[INST] 12345\n\n  \xe2\x96\x81\xf0\x9f\x99\x82\xff\xc3</s>abc",
                   fidelity);
    const auto mixed = tokenizer.encode_with_controls("<s>a<|eot_id|>b \n</s>");
    if (mixed.ok()) {
        for (uint32_t id : mixed.value())
            fuzz_check(id < n, "ids with controls are below vocab_size");
    } else {
        check_refusal(mixed.status());
    }
    TextStream stream(tokenizer, /*at_start=*/true);
    std::string text;
    for (uint32_t id = 0; id <= n && id < 600; ++id)
        text += stream.push(id);
    text += stream.finish();
    fuzz_check(valid_utf8(text), "the vocabulary as text is UTF-8");
    check_template(tokenizer);
}

} // namespace auspex::test
