// Tokens need not be UTF-8, and the text has U+FFFD where they are none: where a token begins in the text is found by
// putting the text together as the engine does.
#include "openai/logprobs.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <deque>

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

} // namespace

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

namespace {

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

} // namespace

struct LogprobsTeller::Waiting {
    auspex_token_logprobs of;
    Piece piece;
    Place begin;
};

struct LogprobsTeller::State {
    Endpoint endpoint;
    Pieces pieces;
    TextWalk walk{};
    std::deque<Waiting> waiting{};
};

LogprobsTeller::LogprobsTeller(Endpoint endpoint, Pieces pieces)
    : state_(new State{.endpoint = endpoint, .pieces = std::move(pieces)}) {}
LogprobsTeller::~LogprobsTeller() = default;
LogprobsTeller::LogprobsTeller(LogprobsTeller&&) noexcept = default;

void LogprobsTeller::add(std::span<const auspex_token_logprobs> tokens) {
    for (const auspex_token_logprobs& of : tokens) {
        Piece piece = state_->pieces(of.token.id);
        const Place begin = state_->walk.push(piece);
        state_->waiting.push_back({of, std::move(piece), begin});
    }
}

Json LogprobsTeller::take(size_t text_bytes) {
    const auto& waiting = state_->waiting;
    const auto first_later = std::find_if(waiting.begin(), waiting.end(),
                                          [&](const Waiting& token) { return token.begin.byte >= text_bytes; });
    return take_first(static_cast<size_t>(first_later - waiting.begin()));
}

Json LogprobsTeller::take_last(size_t text_bytes, auspex_stop_reason stop_reason) {
    return take_first(count_last(text_bytes, stop_reason));
}

size_t LogprobsTeller::count_last(size_t text_bytes, auspex_stop_reason stop_reason) const {
    const auto& waiting = state_->waiting;
    if (stop_reason == AUSPEX_STOP_EOS && !waiting.empty()) return waiting.size() - 1;
    if (stop_reason != AUSPEX_STOP_TEXT) return waiting.size();
    const auto first_cut = std::find_if(waiting.begin(), waiting.end(),
                                        [&](const Waiting& token) { return token.begin.byte >= text_bytes; });
    return static_cast<size_t>(first_cut - waiting.begin());
}

Json LogprobsTeller::take_first(size_t n) {
    const bool is_chat = state_->endpoint == Endpoint::chat;
    Json content = Json::array(), tokens = Json::array(), logprobs = Json::array(), top = Json::array(),
         offsets = Json::array();
    for (; n > 0; --n) {
        const Waiting& token = state_->waiting.front();
        if (is_chat) {
            content.push_back(chat_token(token.piece, token.of.token.logprob));
            Json& best = content.back()["top_logprobs"] = Json::array();
            for (uint32_t k = 0; k < token.of.best_count; ++k)
                best.push_back(chat_token(state_->pieces(token.of.best[k].id), token.of.best[k].logprob));
        } else {
            tokens.push_back(as_utf8(token.piece.bytes));
            logprobs.push_back(number(token.of.token.logprob));
            top.push_back(top_json(token.of, state_->pieces));
            offsets.push_back(token.begin.character);
        }
        state_->waiting.pop_front();
    }
    if (is_chat) return {{"content", content}};
    return {{"tokens", tokens}, {"token_logprobs", logprobs}, {"top_logprobs", top}, {"text_offset", offsets}};
}

size_t count_told(const Generated& generated, const Pieces& pieces) {
    LogprobsTeller teller(Endpoint::completions, pieces);
    teller.add(generated.tokens);
    return teller.count_last(generated.text.size(), generated.stop_reason);
}

Json logprobs_json(Endpoint endpoint, const Generated& generated, const Pieces& pieces) {
    LogprobsTeller teller(endpoint, pieces);
    teller.add(generated.tokens);
    return teller.take_last(generated.text.size(), generated.stop_reason);
}

} // namespace auspex::openai
