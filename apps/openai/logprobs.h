// How probable the tokens of an answer were, in the two forms that OpenAI's interface has.
#pragma once

#include "openai/request.h"

#include <functional>
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

} // namespace auspex::openai
