// tokenizer.model as plain data: a strict reader of the few protobuf fields that matter, and a writer of the same.
// The SentencePiece library only ever sees what the writer made, because it trusts the files that it loads.
#pragma once

#include "base/status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace auspex {

struct SentencePieceModel {
    enum class Type : uint8_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };
    struct Piece {
        std::string spelling; // valid UTF-8, 1 to 1024 bytes, no NUL; all differ; "[EMPTY_7]" of one that has no word
        float score = 0.0f;   // finite; merges with higher scores come first
        Type type = Type::normal;
    };
    std::vector<Piece> pieces;  // index = token id; exactly one is unknown
    bool byte_fallback = false; // then all of <0x00> … <0xFF> are there
    bool add_dummy_prefix = true;
    std::string bos_spelling = "<s>";
    std::string unknown_surface = " \xe2\x81\x87 "; // what an unknown token decodes to
};

// bad_file: not a SentencePiece model, or one that breaks the guarantees above. unsupported: not BPE, text normalised
// before splitting, spaces removed or not escaped, dummy suffix instead of prefix. `path` is for messages.
// Field numbers: sentencepiece_model.proto, https://github.com/google/sentencepiece
Result<SentencePieceModel> parse_sentencepiece_model(std::span<const std::byte> file, const std::string& path);

// Makes a model that came from elsewhere keep the guarantees above, or refuses it: bad_file. Entries that no text can
// come to (of an unknown type, without a word) become unused, and words that end answers or lay out conversations
// control tokens.
Status check_sentencepiece_model(SentencePieceModel& model, const std::string& path);

std::string serialize_sentencepiece_model(const SentencePieceModel& model);

// A word as the library looks for it: in escaped text.
std::string with_space_symbols(std::string_view text);

// The byte of a spelling of exactly the form <0xHH> (upper case), or -1.
int byte_of_spelling(std::string_view spelling);

} // namespace auspex
