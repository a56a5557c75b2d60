// An answer that comes piece by piece: server-sent events, each with a chunk as OpenAI's interface has it, or as
// llama.cpp's /completion does. Every function gives whole events, "data: …\n\n".
#pragma once

#include "openai/answer.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace auspex::openai {

// What a choice has got since the last.
struct News {
    size_t choice = 0;
    std::string_view text{};
    std::span<const auspex_token> tokens{};
    std::span<const auspex_token_logprobs> logprobs{}; // of those tokens, where they are asked for
    std::optional<uint64_t> cached_n{}; // tokens of the prompts that were in the cache; none: not known yet
};

class Chunks {
  public:
    // Of head everything but choices' texts and totals counts. prompt_n: tokens, for what comes with every chunk.
    Chunks(const Answer& head, const StreamOptions& options, uint64_t prompt_n);

    // Where the answer repeats the prompt. One for each choice.
    std::string first_text(size_t choice, std::string_view text);
    // Of tokens before the first text nothing goes out until it comes: the first event says when there was something to read.
    std::string news(const News& news);
    // last: the whole answer, with its last choice; null before that.
    std::string end_of_choice(size_t choice, auspex_stop_reason reason, const Answer* last);
    std::string end(const Answer& answer); // what was counted, where it is asked for, and the last event

  private:
    struct Choice {
        bool has_begun = false;
        size_t text_bytes = 0;
        std::vector<auspex_token> tokens{}; // not told of yet: those before the first text
        std::optional<LogprobsTeller> logprobs{};
    };

    std::string tell(size_t choice, std::string_view text, const Json& logprobs);
    std::string chunk(size_t choice, std::string_view text, const Json& logprobs, std::string_view more);
    std::string usage_so_far(const Answer* whole = nullptr) const;

    Endpoint endpoint_;
    StreamOptions options_;
    bool has_tokens_;
    uint64_t prompt_n_, predicted_n_ = 0;
    std::optional<uint64_t> cached_n_{};
    std::string begin_; // of every chunk
    std::vector<Choice> choices_;
};

// After the head of a stream was sent there is no other way to tell.
std::string error_event(const RequestError& error);
// What is no event, so that proxies and clients see that something lives: ": queued 3\n\n".
std::string comment(std::string_view text);

} // namespace auspex::openai
