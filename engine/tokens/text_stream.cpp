// The streaming half of detokenisation. The text equals what SentencePiece decodes from the whole list at once.
#include "tokens/text_stream.h"

#include "tokens/utf8.h"

namespace auspex {
namespace {
constexpr std::string_view kReplacement = "\xef\xbf\xbd"; // U+FFFD
} // namespace

std::string TextStream::push(uint32_t token) {
    std::string bytes = tokenizer_->piece(token);
    if (bytes.empty())
        return finish(); // a control token ends an unfinished character, and leaves the start where it is
    if (at_start_) {
        at_start_ = false;
        if (tokenizer_->has_dummy_prefix() && bytes[0] == ' ' && tokenizer_->spelling(token).starts_with(kSpaceSymbol))
            bytes.erase(0, 1);
    }
    pending_ += bytes;
    std::string out;
    size_t at = 0;
    while (at < pending_.size()) {
        const std::string_view rest = std::string_view(pending_).substr(at);
        const int length = utf8_length(rest);
        if (length < 0) break;
        out += length > 0 ? rest.substr(0, static_cast<size_t>(length)) : kReplacement;
        at += length > 0 ? static_cast<size_t>(length) : 1;
    }
    pending_.erase(0, at);
    return out;
}

std::string TextStream::finish() {
    std::string out;
    for (size_t i = 0; i < pending_.size(); ++i)
        out += kReplacement;
    pending_.clear();
    return out;
}

} // namespace auspex
