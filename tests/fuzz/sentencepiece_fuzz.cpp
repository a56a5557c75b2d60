// tokenizer.model: what the reader accepts survives its own writing, loads into the library, and splits text.
#include "fuzz/fuzz_targets.h"
#include "fuzz/memory_files.h"
#include "tokens/open_tokenizer.h"
#include "tokens/sentencepiece_model.h"

namespace auspex::test {
namespace {

// Whether the model has tokens for all bytes; nullopt when it was refused.
std::optional<bool> check_model(FuzzInput input, const std::string& path) {
    const auto parsed = parse_sentencepiece_model(input, path);
    if (!parsed.ok()) {
        check_refusal(parsed.status());
        return std::nullopt;
    }
    const std::string bytes = serialize_sentencepiece_model(parsed.value());
    const auto again = parse_sentencepiece_model(std::as_bytes(std::span(bytes)), path);
    fuzz_check(again.ok() && again.value().pieces.size() == parsed.value().pieces.size() &&
                   serialize_sentencepiece_model(again.value()) == bytes,
               "a model survives its own writing");
    return parsed.value().byte_fallback;
}

} // namespace

void fuzz_sentencepiece(FuzzInput input) {
    clear_files();
    const std::string path = memory_folder() + "/tokenizer.model";
    put_file(path, input);
    const auto byte_fallback = check_model(input, path); // and its memory back before the next step
    if (!byte_fallback) return;
    const auto tokenizer = open_sentencepiece_tokenizer(memory_folder());
    if (!tokenizer.ok()) return check_refusal(tokenizer.status());
    use_tokenizer(*tokenizer.value(), *byte_fallback ? Fidelity::spaces : Fidelity::anything);
}

} // namespace auspex::test
