// What a body of /v1/completions or /v1/chat/completions asks for, checked field by field. Names, meanings and ranges
// are OpenAI's, llama.cpp's and, where these have none, ours. Fields that are not listed in request.cpp are ignored.
#pragma once

#include "openai/error.h"

#include <auspex/auspex_tools.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace auspex::openai {

enum class Endpoint { completions, chat, completion }; // the last is llama.cpp's own
// Of a path: "/v1/completions", "/v1/chat/completions", "/completion". nullopt: another.
std::optional<Endpoint> endpoint_of(std::string_view path);

// What the engine behind the requests can do.
struct Limits {
    uint32_t vocab_size = 0, max_context = 0; // tokens
    uint32_t max_draft_len = 0;
    uint32_t max_choices = 1; // of a prompt
    bool has_draft_model = false;
    bool has_self_draft = false; // the target's own weights in fewer bits
    double temperature = 0.0;    // where a request says nothing
};

// Whether it has the draft model, or the copy of the target's own weights, that the drafter cannot do without.
bool is_loaded(const auspex_drafter_info& drafter, const Limits& limits);

// How an answer comes that does not come whole.
struct StreamOptions {
    bool has_usage = false;            // a last chunk tells what was counted
    bool has_continuous_usage = false; // every chunk does
    bool has_origins = false;          // chunks tell of each token how it came about
};

struct Message {
    std::string role, content;
};

using Prompt = std::variant<std::string, std::vector<uint32_t>>; // a text, or token ids

struct Request {
    Endpoint endpoint = Endpoint::completions;
    std::optional<std::string> model{};   // any name is taken; whoever is strict compares it
    std::vector<Message> messages{};      // of a chat
    std::vector<Prompt> prompts{};        // of completions; choice i of prompt p has the index p · n + i
    uint32_t n = 1;                       // choices of a prompt
    std::optional<uint32_t> max_tokens{}; // absent: what is left of the context; 0: the prompt is read, and that is all
    std::optional<int64_t> seed{};        // of choice 0; choice i has seed + i. Absent: any

    double temperature = 0.0, top_p = 1.0, min_p = 0.0;
    uint32_t top_k = 0;
    double repeat_penalty = 1.0, presence_penalty = 0.0, frequency_penalty = 0.0;
    std::vector<auspex_token_bias> biases{};
    std::vector<std::string> stop_texts{};
    bool ignore_eos = false;
    std::optional<uint32_t> draft_len{}; // these three absent: the program's own
    std::optional<auspex_drafter> drafter{};
    std::optional<auspex_acceptance> acceptance{};
    std::optional<uint32_t> logprobs{}; // how many of the best tokens are told with each; absent: nothing of it
    int32_t priority = 0;               // of those that wait the lowest goes first
    std::string cache_salt{};           // known beginnings are shared with requests of the same alone
    bool is_cached = true;              // false: each of its prompts is read whole, whatever is known of it
    bool has_echo = false;              // the answer repeats the prompt before it
    bool has_tokens = false;            // … and tells the ids of its tokens
    std::optional<StreamOptions> stream{}; // absent: it comes whole

    uint32_t n_prompts() const { return endpoint == Endpoint::chat ? 1 : static_cast<uint32_t>(prompts.size()); }
};

// Of an array. Throws RequestError: one is none, or not below vocab_size.
std::vector<uint32_t> parse_ids(const Json& list, const std::string& param, uint32_t vocab_size);
// {"messages": […]}, as a chat has it. Throws RequestError.
std::vector<Message> parse_messages(const Json& body);
// Throws RequestError.
Request parse_request(Endpoint endpoint, const Json& body, const Limits& limits);

// A description of one choice of a request. Points into the request and into this.
class ChoiceDesc {
  public:
    // usual: what holds where the request says nothing. seed: of choice 0.
    ChoiceDesc(const Request& request, const auspex_sequence_desc& usual, uint64_t seed, uint32_t choice);
    ChoiceDesc(const ChoiceDesc&) = delete;
    ChoiceDesc& operator=(const ChoiceDesc&) = delete;

    const auspex_sequence_desc& operator*() const { return desc_; }
    auspex_sequence_desc* operator->() { return &desc_; }

  private:
    std::vector<const char*> stop_texts_;
    std::string cache_salt_;
    auspex_sequence_desc desc_;
};

} // namespace auspex::openai
