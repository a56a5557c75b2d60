// What comes of a request, as plain data, and whole: as OpenAI's object chat.completion or text_completion, or as
// llama.cpp's answer to /completion. How it comes piece by piece says chunks.h.
#pragma once

#include "openai/logprobs.h"

#include <array>
#include <string>
#include <vector>

namespace auspex::openai {

struct Choice {
    std::string text{};
    auspex_stop_reason stop_reason = AUSPEX_STOP_NONE;
    std::vector<auspex_token_logprobs> logprobs{}; // of the tokens that were generated, where they are asked for
    std::string before{};           // the prompt, where the answer repeats it
    std::vector<uint32_t> tokens{}; // where they are asked for
};

// Sums over the prompts and choices of an answer: of several, the speeds are means of one.
struct Totals {
    uint64_t prompt_n = 0;                  // tokens; each prompt counts once, whatever n is
    uint64_t cached_n = 0;                  // of them: were in the cache, and not read
    uint64_t predicted_n = 0;               // end tokens included
    double prompt_ms = 0, predicted_ms = 0; // wall time
    bool has_prompt_ms = false, has_predicted_ms = false;
    uint64_t draft_n = 0, draft_n_accepted = 0, draft_rounds = 0;
    uint64_t tested_n = 0;
    double overlap = 0;
    std::array<uint64_t, AUSPEX_MAX_DRAFT_LEN + 1> accepted_histogram{};
    double c = -1, v = -1, predicted_speedup = -1; // of the choice that ended last; < 0: not known
    std::string choice{};

    // Of the sequence that read it. waited_ms: of its prompt_ms, before it was let in.
    void add_prompt(const auspex_sequence_stats& stats, double waited_ms = 0);
    void add_choice(const auspex_sequence_stats& stats);
};

struct Answer {
    Endpoint endpoint = Endpoint::completions;
    std::string id{};    // random_id("chatcmpl-")
    int64_t created = 0; // seconds since 1970
    std::string model{}, fingerprint{};
    uint64_t seed = 0; // of choice 0
    std::vector<Choice> choices{};
    bool has_tokens = false;
    Pieces pieces{}; // empty: log-probabilities are not told
    Totals totals{};
};

Json to_json(const Answer& answer);
// Parts of it.
Json usage_json(const Totals& totals);
Json timings_json(const Totals& totals);
Json speculation_json(const Answer& answer);

// "stop", "length"; null: nothing of these.
Json finish_reason(auspex_stop_reason reason);
// "eos", "word", "limit": llama.cpp's words for why it ended.
const char* stop_type(auspex_stop_reason reason);
// What answers of this endpoint are called by: "chatcmpl-", "cmpl-".
const char* id_prefix(Endpoint endpoint);
// The prefix and 24 random letters and digits.
std::string random_id(const std::string& prefix);

} // namespace auspex::openai
