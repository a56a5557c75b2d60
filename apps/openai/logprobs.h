// How probable the tokens of an answer were, in the two forms that OpenAI's interface has.
#pragma once

#include "openai/request.h"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace auspex::openai {

// What a token stands for.
struct Piece {
    std::string bytes{};     // need not be whole characters; of a control token its spelling
    bool is_control = false; // stands for no text
};
using Pieces = std::function<Piece(uint32_t token)>;

// What was generated, as the engine tells of it.
struct Generated {
    const std::string& text;
    auspex_stop_reason stop_reason;
    const std::vector<auspex_token_logprobs>& tokens; // all, also an end token and those of a stop text
};

// How many of the tokens, from the first on, the answer has: not its end token, nor those of which nothing stands
// before the stop text.
size_t count_told(const Generated& generated, const Pieces& pieces);

// Completions: {tokens, token_logprobs, top_logprobs, text_offset}; chat: {content}. Strings are UTF-8.
Json logprobs_json(Endpoint endpoint, const Generated& generated, const Pieces& pieces);

// The same piece by piece, of an answer that comes so. A token is told of once its text begins to come.
class LogprobsTeller {
  public:
    LogprobsTeller(Endpoint endpoint, Pieces pieces);
    ~LogprobsTeller();
    LogprobsTeller(LogprobsTeller&&) noexcept;

    void add(std::span<const auspex_token_logprobs> tokens);
    Json take(size_t text_bytes);                                     // so much of the text has come, in all
    Json take_last(size_t text_bytes, auspex_stop_reason stop_reason); // the rest

  private:
    friend size_t count_told(const Generated& generated, const Pieces& pieces);
    struct Waiting; // a token that was not told of
    struct State;

    size_t count_last(size_t text_bytes, auspex_stop_reason stop_reason) const;
    Json take_first(size_t n);

    std::unique_ptr<State> state_;
};

} // namespace auspex::openai
