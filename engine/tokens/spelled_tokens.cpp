// Spellings are found by narrowing a sorted list byte by byte, which needs no tables beside the list. Also here,
// because it is the same for every kind of vocabulary: encode_with_controls, and which control tokens end an answer.
#include "tokens/spelled_tokens.h"

#include "base/catching.h"
#include "tokens/tokenizer.h"

#include <algorithm>
#include <iterator>

namespace auspex {

SpelledTokens::SpelledTokens(std::vector<Entry> entries) : entries_(std::move(entries)) {
    std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
        return a.spelling != b.spelling ? a.spelling < b.spelling : a.token < b.token;
    });
    const auto same = [](const Entry& a, const Entry& b) { return a.spelling == b.spelling; };
    entries_.erase(std::unique(entries_.begin(), entries_.end(), same), entries_.end());
    for (const Entry& entry : entries_)
        begins_.set(static_cast<unsigned char>(entry.spelling[0]));
}

std::optional<uint32_t> SpelledTokens::find(std::string_view spelling) const {
    const auto at = std::lower_bound(entries_.begin(), entries_.end(), spelling,
                                     [](const Entry& entry, std::string_view text) { return entry.spelling < text; });
    if (at == entries_.end() || at->spelling != spelling) return std::nullopt;
    return at->token;
}

std::optional<SpelledTokens::Match> SpelledTokens::next(std::string_view text, size_t from) const {
    const auto byte = [](char c) { return static_cast<unsigned char>(c); };
    for (size_t begin = from; begin < text.size(); ++begin) {
        if (!begins_.test(byte(text[begin]))) continue;
        std::optional<Match> longest;
        // [first, last) are the entries that begin with the `length` bytes of text read so far, and are longer.
        auto first = entries_.begin(), last = entries_.end();
        for (size_t length = 0; begin + length < text.size();) {
            const unsigned char c = byte(text[begin + length]);
            first = std::partition_point(first, last, [&](const Entry& e) { return byte(e.spelling[length]) < c; });
            last = std::partition_point(first, last, [&](const Entry& e) { return byte(e.spelling[length]) == c; });
            ++length;
            if (first != last && first->spelling.size() == length) {
                longest = Match{begin, length, first->token};
                ++first;
            }
            if (first == last) break;
        }
        if (longest) return longest;
    }
    return std::nullopt;
}

bool is_end_spelling(std::string_view spelling) {
    // Llama 2, 3 and 3.1; chatml; Phi; GPT-2; Gemma; code models; OpenChat. "</s>" first: the oldest.
    constexpr std::string_view ends[] = {"</s>",          "<|eot_id|>",       "<|eom_id|>",      "<|end_of_text|>",
                                         "<|im_end|>",    "<|end|>",          "<|endoftext|>",   "<end_of_turn>",
                                         "<EOT>",         "_<EOT>",           "<|end_of_turn|>", "<|eot|>",
                                         "<|endofturn|>", "<|assistant_end|>"};
    return std::find(std::begin(ends), std::end(ends), spelling) != std::end(ends);
}

bool is_control_spelling(std::string_view spelling) {
    constexpr std::string_view openings[] = {"<s>", "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>",
                                             "<|im_start|>"};
    return is_end_spelling(spelling) || std::find(std::begin(openings), std::end(openings), spelling) != std::end(openings);
}

Result<std::vector<uint32_t>> Tokenizer::encode_with_controls(std::string_view text) const {
    const SpelledTokens* controls = control_tokens();
    if (!controls || controls->empty() || text.size() > kMaxTextBytes) return encode(text);
    return catching("tokenizer", "to split the text", [&]() -> Result<std::vector<uint32_t>> {
        std::vector<uint32_t> ids;
        for (size_t at = 0; at < text.size();) {
            const auto match = controls->next(text, at);
            const size_t end = match ? match->begin : text.size();
            if (end > at) {
                AUSPEX_TRY_ASSIGN(part, encode(text.substr(at, end - at)));
                ids.insert(ids.end(), part.begin(), part.end());
            }
            if (match) ids.push_back(match->token);
            at = match ? end + match->length : end;
        }
        return ids;
    });
}

} // namespace auspex
