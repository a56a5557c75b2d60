// Cuts text into the parts inside which BPE merges: words, up to three digits, punctuation, white space. By PCRE2, in
// time linear in the text and without a stack that grows with it.
#pragma once

#include "base/status.h"

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

namespace auspex {

// As tokenizer.json of Llama 3 to 3.3 spells it; other patterns are other vocabularies.
inline constexpr std::string_view kLlama3SplitPattern =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
    "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

class PreTokenizer {
  public:
    static Result<PreTokenizer> llama3();

    // Where each part ends, ascending; the last is text.size(). `text` is valid UTF-8: the caller has seen to it.
    // Safe to call from several threads.
    Result<std::vector<size_t>> ends_of_parts(std::string_view text) const;

  private:
    struct Pattern; // hides PCRE2
    struct Free {
        void operator()(Pattern* pattern) const;
    };
    explicit PreTokenizer(Pattern* pattern) : pattern_(pattern) {}
    std::unique_ptr<Pattern, Free> pattern_;
};

} // namespace auspex
