// tokenizer.model: what the reader accepts survives its own writing, loads into the library, and splits text.
#include "fuzz/fuzz_targets.h"
#include "fuzz/memory_files.h"
#include "tokens/open_tokenizer.h"
#include "tokens/sentencepiece_model.h"

namespace auspex::test {

void fuzz_sentencepiece(FuzzInput input) {
    clear_files();
    const std::string path = memory_folder() + "/tokenizer.model";
    put_file(path, input);
    const auto parsed = parse_sentencepiece_model(input, path);
    if (!parsed.ok()) return check_refusal(parsed.status());
    const SentencePieceModel& model = parsed.value();
    const std::string bytes = serialize_sentencepiece_model(model);
    const auto again = parse_sentencepiece_model(std::as_bytes(std::span(bytes)), path);
    fuzz_check(again.ok() && again.value().pieces.size() == model.pieces.size() &&
                   serialize_sentencepiece_model(again.value()) == bytes,
               "a model survives its own writing");
    const auto tokenizer = open_sentencepiece_tokenizer(memory_folder());
    if (!tokenizer.ok()) return check_refusal(tokenizer.status());
    use_tokenizer(*tokenizer.value(), model.byte_fallback ? Fidelity::spaces : Fidelity::anything);
}

} // namespace auspex::test
