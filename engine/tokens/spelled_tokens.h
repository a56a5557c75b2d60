// Tokens that stand for their spelling wherever it appears in a text: control tokens in texts that programs wrote, and
// the words that were added to a vocabulary beside its merges. Who asks for which is the business of the tokenizers.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace auspex {

class SpelledTokens {
  public:
    struct Entry {
        std::string spelling; // not empty; of equal spellings the lowest token counts
        uint32_t token = 0;
    };
    struct Match {
        size_t begin = 0, length = 0; // bytes
        uint32_t token = 0;
    };

    SpelledTokens() = default;
    explicit SpelledTokens(std::vector<Entry> entries);

    bool empty() const { return entries_.empty(); }
    const std::vector<Entry>& entries() const { return entries_; } // by spelling
    std::optional<uint32_t> find(std::string_view spelling) const;
    // The first place at or after `from` where one of the spellings begins, and the longest one there. Time: at most
    // the longest spelling for each byte of text.
    std::optional<Match> next(std::string_view text, size_t from) const;

  private:
    std::vector<Entry> entries_; // sorted by spelling: a prefix of another stands right before what it begins
    std::bitset<256> begins_;    // first bytes of all spellings
};

// Whether a token of this spelling ends an answer, in any of the families of models that we know.
bool is_end_spelling(std::string_view spelling);
// Whether a word of this spelling is a control token whatever type its file gives it, as converters have often given the
// wrong one: it ends answers, or the layouts of conversations (chat_template.h) are made of it.
bool is_control_spelling(std::string_view spelling);

} // namespace auspex
