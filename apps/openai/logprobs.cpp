// Tokens need not be UTF-8, and the text has U+FFFD where they are none: where a token begins in the text is found by
// putting the text together as the engine does.
#include "openai/logprobs.h"

#include <array>
#include <charconv>
#include <cmath>

namespace auspex::openai {

namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd"; // U+FFFD
constexpr double kImpossible = -9999.0; // OpenAI's number for a probability of 0, whose logarithm JSON cannot say

// Bytes of the character at the start of text (not empty); 0: none starts so; -1: the text ends before it does.
int character_length(std::string_view text) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = byte(0);
    if (lead < 0x80) return 1;
    if (lead < 0xc2 || lead > 0xf4) return 0;
    const size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    // The second byte excludes overlong forms, surrogates and what is above U+10FFFF.
    const unsigned char least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const unsigned char most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    for (size_t i = 1; i < length; ++i) {
        if (i == text.size()) return -1;
        if (byte(i) < (i == 1 ? least : 0x80) || byte(i) > (i == 1 ? most : 0xbf)) return 0;
    }
    return static_cast<int>(length);
}

// Each byte that is part of no character becomes U+FFFD, as in the text.
std::string as_utf8(std::string_view bytes) {
    std::string text;
    while (!bytes.empty()) {
        const int length = character_length(bytes);
        const size_t n_bytes = length > 0 ? static_cast<size_t>(length) : 1;
        text += length > 0 ? bytes.substr(0, n_bytes) : kReplacement;
        bytes.remove_prefix(n_bytes);
    }
    return text;
}

// A place in a text.
struct Place {
    size_t byte = 0, character = 0;
};

// Walks along a text token by token.
class TextWalk {
  public:
    // Where the token begins: of one that goes on with a character, where that character does.
    Place push(const Piece& piece) {
        if (piece.is_control) { // ends an unfinished character
            at_.byte += kReplacement.size() * open_.size();
            at_.character += open_.size();
            open_.clear();
            return at_;
        }
        const size_t n_before = open_.size();
        open_ += piece.bytes;
        std::optional<Place> begin;
        size_t at = 0;
        while (at < open_.size()) {
            const int length = character_length(std::string_view(open_).substr(at));
            const size_t n_bytes = length > 0 ? static_cast<size_t>(length) : 1;
            if (!begin && (length < 0 || at + n_bytes > n_before)) begin = at_;
            if (length < 0) break;
            at += n_bytes;
            at_.byte += length > 0 ? n_bytes : kReplacement.size();
            at_.character += 1;
        }
        open_.erase(0, at);
        return begin.value_or(at_);
    }

  private:
    Place at_;
    std::string open_; // bytes of a character that has not ended
};

// With its own digits, not those of the nearest double.
Json number(float logprob) {
    if (std::isnan(logprob)) return nullptr;
    if (std::isinf(logprob)) return kImpossible;
    std::array<char, 32> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), logprob).ptr;
    return std::stod(std::string(digits.data(), end));
}

Json chat_token(const Piece& piece, float logprob) {
    const Json bytes = piece.is_control ? Json() : Json(std::vector<uint8_t>(piece.bytes.begin(), piece.bytes.end()));
    return {{"token", as_utf8(piece.bytes)}, {"logprob", number(logprob)}, {"bytes", bytes}};
}

Json chat_json(const Generated& generated, const Pieces& pieces) {
    Json content = Json::array();
    const size_t n = count_told(generated, pieces);
    for (size_t i = 0; i < n; ++i) {
        const auspex_token_logprobs& of = generated.tokens[i];
        Json token = chat_token(pieces(of.token.id), of.token.logprob);
        Json& top = token["top_logprobs"] = Json::array();
        for (uint32_t k = 0; k < of.best_count; ++k)
            top.push_back(chat_token(pieces(of.best[k].id), of.best[k].logprob));
        content.push_back(std::move(token));
    }
    return {{"content", content}};
}

// The best, and the one that was said; of several that look alike the most probable.
Json top_json(const auspex_token_logprobs& of, const Pieces& pieces) {
    Json top = Json::object();
    const auto add = [&](const auspex_token_logprob& token) {
        top.emplace(as_utf8(pieces(token.id).bytes), number(token.logprob));
    };
    for (uint32_t k = 0; k < of.best_count; ++k)
        add(of.best[k]);
    add(of.token);
    return top;
}

Json completions_json(const Generated& generated, const Pieces& pieces) {
    Json tokens = Json::array(), logprobs = Json::array(), top = Json::array(), offsets = Json::array();
    TextWalk walk;
    const size_t n = count_told(generated, pieces);
    for (size_t i = 0; i < n; ++i) {
        const auspex_token_logprobs& of = generated.tokens[i];
        const Piece piece = pieces(of.token.id);
        tokens.push_back(as_utf8(piece.bytes));
        logprobs.push_back(number(of.token.logprob));
        top.push_back(top_json(of, pieces));
        offsets.push_back(walk.push(piece).character);
    }
    return {{"tokens", tokens}, {"token_logprobs", logprobs}, {"top_logprobs", top}, {"text_offset", offsets}};
}

} // namespace

size_t count_told(const Generated& generated, const Pieces& pieces) {
    const size_t n = generated.tokens.size();
    if (generated.stop_reason == AUSPEX_STOP_EOS && n > 0) return n - 1;
    if (generated.stop_reason != AUSPEX_STOP_TEXT) return n;
    TextWalk walk;
    for (size_t i = 0; i < n; ++i)
        if (walk.push(pieces(generated.tokens[i].token.id)).byte >= generated.text.size()) return i;
    return n;
}

Json logprobs_json(Endpoint endpoint, const Generated& generated, const Pieces& pieces) {
    return endpoint == Endpoint::chat ? chat_json(generated, pieces) : completions_json(generated, pieces);
}

} // namespace auspex::openai
