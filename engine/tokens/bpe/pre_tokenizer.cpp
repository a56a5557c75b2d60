// The only file that includes PCRE2. The pattern is the published one, rewritten so that nothing is ever tried twice: a
// part that has matched is never given back (possessive), and white space is listed, because PCRE2 counts U+180E as
// space and the reference does not.
#define PCRE2_CODE_UNIT_WIDTH 8

#include "tokens/bpe/pre_tokenizer.h"

#include <pcre2.h>

#include <string>

namespace auspex {
namespace {

// Unicode's White_Space, without and with line breaks; to stand inside [].
#define BLANKS "\\t\\x0b\\x0c \\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
#define SPACES "\\r\\n" BLANKS

// Each line means what the same alternative of kLlama3SplitPattern means:
//  - no character is both an optional first one and what must follow it, so the option is never given back;
//  - \s*[\r\n]+ takes white space up to its last line break: blanks and breaks in turn, as often as breaks come;
//  - \s+(?!\S) gives back one character at most, as the one before the last is followed by white space.
constexpr const char* kLlama3Linear = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
                                      "|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++"
                                      "|\\p{N}{1,3}+"
                                      "| ?+[^" SPACES "\\p{L}\\p{N}]++[\\r\\n]*+"
                                      "|(?:[" BLANKS "]*+[\\r\\n]++)++"
                                      "|[" SPACES "]+(?![^" SPACES "])"
                                      "|[" SPACES "]++";

#undef SPACES
#undef BLANKS

// Far above what the pattern needs at any place, far below what a mistake in it would use.
constexpr uint32_t kMaxSteps = 100u << 20;
constexpr uint32_t kMaxHeapKib = 64u << 10;

struct FreeMatch {
    void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct FreeContext {
    void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

std::string text_of_error(int error) {
    PCRE2_UCHAR text[120] = {};
    pcre2_get_error_message(error, text, sizeof text);
    return in_quotes(reinterpret_cast<const char*>(text));
}

} // namespace

struct PreTokenizer::Pattern {
    pcre2_code* code = nullptr;
};

void PreTokenizer::Free::operator()(Pattern* pattern) const {
    pcre2_code_free(pattern->code);
    delete pattern;
}

Result<PreTokenizer> PreTokenizer::llama3() {
    int error = 0;
    PCRE2_SIZE at = 0;
    pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(kLlama3Linear), PCRE2_ZERO_TERMINATED, PCRE2_UTF,
                                     &error, &at, nullptr);
    if (!code)
        return Status(Code::internal, "tokenizer: PCRE2 found " + text_of_error(error) + " at byte " +
                                          std::to_string(at) + " of the split pattern");
    // Without machine code (not built in, or the system forbids making it) the interpreter does the same, slower.
    static_cast<void>(pcre2_jit_compile(code, PCRE2_JIT_COMPLETE));
    return PreTokenizer(new Pattern{code});
}

Result<std::vector<size_t>> PreTokenizer::ends_of_parts(std::string_view text) const {
    const std::unique_ptr<pcre2_match_data, FreeMatch> match(pcre2_match_data_create(1, nullptr));
    const std::unique_ptr<pcre2_match_context, FreeContext> context(pcre2_match_context_create(nullptr));
    if (!match || !context) return Status(Code::out_of_host_memory, "tokenizer: found no memory to split the text");
    pcre2_set_match_limit(context.get(), kMaxSteps);
    pcre2_set_heap_limit(context.get(), kMaxHeapKib);
    const PCRE2_SIZE* found = pcre2_get_ovector_pointer(match.get());
    std::vector<size_t> ends;
    for (size_t at = 0; at < text.size();) {
        // Checking the encoding again at each part would take quadratic time.
        const int groups = pcre2_match(pattern_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                                       PCRE2_NO_UTF_CHECK, match.get(), context.get());
        if (groups < 0 && groups != PCRE2_ERROR_NOMATCH)
            return Status(Code::internal, "tokenizer: PCRE2 found " + text_of_error(groups) + " at byte " +
                                              std::to_string(at) + " of the text");
        // Every character begins one of the alternatives; were one left over, it would be a part of its own.
        const bool matched = groups > 0 && found[1] > at;
        if (matched && found[0] > at) ends.push_back(found[0]);
        at = matched ? found[1] : text.size();
        ends.push_back(at);
    }
    return ends;
}

} // namespace auspex
