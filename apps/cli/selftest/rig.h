// What the checks share: engines of random weights, questions and answers, comparisons of texts.
#pragma once

#include "cli/common/engine/client.h"

#include <functional>

namespace auspex::cli {

// From all tokens so far to at most max_drafts that may follow.
using HostDrafter = std::function<std::vector<uint32_t>(const std::vector<uint32_t>& tokens, uint32_t max_drafts)>;

struct Question {
    std::vector<uint32_t> prompt{}; // empty: of a fork
    uint32_t n_tokens = 0;
    uint32_t draft_len = 0; // 0: plain
    auspex_drafter drafter = AUSPEX_DRAFTER_MODEL;
    float temperature = 0.0f;
    uint64_t seed = 1;
    auspex_acceptance acceptance = AUSPEX_ACCEPT_REJECTION;
    float lenience = 1.0f;
    std::vector<auspex_token_bias> biases{};
    const HostDrafter* host_drafter = nullptr; // for AUSPEX_DRAFTER_HOST
};
auspex_sequence_desc describe(const Question& question); // points into the question; end tokens do not stop

struct Answer {
    std::vector<uint32_t> tokens;
    auspex_sequence_stats stats;
};
// As many side by side as `n_slots`; in the order of the questions.
std::vector<Answer> answer(Client& client, const std::vector<Question>& questions, uint32_t n_slots);
// Steps until nothing is left to do.
void drive(Client& client);

// Drafts tested and accepted, and how texts compare with the one they should be.
struct Comparison {
    uint64_t n_tokens = 0, draft_n = 0, draft_n_accepted = 0;
    uint32_t n_texts = 0, n_different = 0;
    std::string first_difference{}; // "token 17 is 5, expected 9, with …"

    void add(const Answer& found, const std::vector<uint32_t>& expected, const std::string& setting);
    // "40 texts, …" or the first difference.
    std::string figure(const std::string& when_equal) const;
    std::vector<std::pair<std::string, double>> measured() const;
};

// Random weights on the device that `models` names. A draft that is the target with fewer layers, or with weights a
// little smaller, knows something of it.
auspex_synthetic_shape tiny_shape(uint32_t vocab_size, uint32_t n_layers, uint64_t seed);
struct SyntheticPair {
    auspex_synthetic_shape target, draft;
    uint32_t n_slots = 1, max_draft_len = 8, context = 64;
};
// Owns what a Client of random weights points into.
class SyntheticClient {
  public:
    SyntheticClient(const ModelOptions& models, const SyntheticPair& pair);
    Client& operator*() { return client_; }
    Client* operator->() { return &client_; }

  private:
    ModelOptions options_;
    auspex_synthetic_models shapes_;
    Client client_;
};

// Prompt ids from a seed: the same everywhere.
std::vector<uint32_t> random_prompt(uint32_t n, uint32_t vocab_size, uint64_t seed);

} // namespace auspex::cli
