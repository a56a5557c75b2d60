// A byte-level BPE vocabulary as plain data, whatever file it came from: what each token stands for, and which two
// tokens merge into which third, in which order. Readers of files fill BpeParts; bpe_tokenizer.cpp uses the checked
// BpeModel.
#pragma once

#include "base/status.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace auspex {

enum class BpeKind : uint8_t {
    absent,       // only while a file is read
    normal,       // bytes, reached by merges
    control,      // no bytes; text never becomes one
    user_defined, // bytes, found in text before it is split
    unused,       // an id that nothing stands for
};

// As the files tell it. Spellings of normal tokens use GPT-2's alphabet (one character per byte), others are plain
// text.
struct BpeParts {
    struct Token {
        std::string spelling;
        BpeKind kind = BpeKind::absent;
    };
    uint64_t id_limit = 1u << 19;     // ids lie below; readers lower it to what their file has room for
    std::vector<Token> tokens;        // index = id
    std::string merge_text;           // "left right" of every merge, one after the other
    std::vector<uint32_t> merge_ends; // where each ends in merge_text; the first has the highest priority
    bool ignore_merges = false;       // a part of text that is itself a token becomes it, whatever the merges say

    // bad_file when the id is taken or too large, or the spelling is too long. An empty one makes the token unused.
    Status add_token(uint64_t id, std::string_view spelling, BpeKind kind, const std::string& path);
    // bad_file above the largest number of merges.
    Status add_merge(std::string_view left_and_right, const std::string& path);
    std::string_view merge(size_t rank) const; // "left right"
};

struct BpeModel {
    struct Token {
        std::string bytes; // what it stands for; of a control or unused token its spelling
        BpeKind kind = BpeKind::normal;
    };
    struct Merge {
        uint32_t right = 0, rank = 0, result = 0;
    };
    std::vector<Token> tokens;           // index = id
    std::array<uint32_t, 256> of_byte{}; // the token that stands for each single byte
    std::vector<uint32_t> by_bytes;      // normal and user-defined tokens, sorted by bytes
    std::vector<uint32_t> bucket;        // [65537] where the tokens with each two first bytes begin in by_bytes
    std::vector<uint32_t> merge_begin;   // [tokens + 1] where the merges of each left token begin in merges
    std::vector<Merge> merges;           // sorted by left, then right
    bool ignore_merges = false;

    std::optional<uint32_t> find(std::string_view bytes) const;
    const Merge* merge_of(uint32_t left, uint32_t right) const; // null when they do not merge
};

// bad_file: ids without a token, a spelling twice, one of the 256 bytes missing, a spelling outside of the alphabet, a
// merge that repeats or that names or gives a token that does not exist or has no bytes.
Result<BpeModel> build_bpe_model(BpeParts parts, const std::string& path);

// GPT-2's alphabet: printable characters of Latin-1 stand for themselves, the other 68 bytes for U+0100 to U+0143.
// https://github.com/openai/gpt-2/blob/master/src/encoder.py, bytes_to_unicode
std::string alphabet_spelling(std::string_view bytes);
std::optional<std::string> bytes_of_alphabet(std::string_view spelling); // nullopt: a character outside of it

} // namespace auspex
