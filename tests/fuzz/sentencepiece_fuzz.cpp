// tokenizer.model: what the reader accepts survives its own writing, loads into the library, and splits text.
#include "fuzz/fuzz_targets.h"
#include "fuzz/memory_files.h"
#include "tokens/open_tokenizer.h"
#include "tokens/sentencepiece_model.h"

#include <algorithm>
#include <optional>

namespace auspex::test {
namespace {

// What texts may be expected to come back as; nullopt when the model was refused.
std::optional<Fidelity> check_model(FuzzInput input, const std::string& path) {
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
    const auto& pieces = parsed.value().pieces;
    // Without a piece of its own U+2581 falls back to bytes, and is then itself in text that comes out.
    const bool has_space = std::any_of(pieces.begin(), pieces.end(), [](const SentencePieceModel::Piece& piece) {
        return piece.spelling == kSpaceSymbol && piece.type == SentencePieceModel::Type::normal;
    });
    return parsed.value().byte_fallback && has_space ? Fidelity::spaces : Fidelity::anything;
}

} // namespace

void fuzz_sentencepiece(FuzzInput input) {
    clear_files();
    const std::string path = memory_folder() + "/tokenizer.model";
    put_file(path, input);
    const auto fidelity = check_model(input, path); // and its memory back before the next step
    if (!fidelity) return;
    const auto tokenizer = open_sentencepiece_tokenizer(memory_folder());
    if (!tokenizer.ok()) return check_refusal(tokenizer.status());
    use_tokenizer(*tokenizer.value(), *fidelity);
}

} // namespace auspex::test
