// What callers ask of an engine, and whether they may: a request is checked here before anything is done for it.
// Knows an engine's sizes, not the engine; whether there is a slot or a page left is admission's to say.
#pragma once

#include "base/status.h"
#include "draft/drafters.h"

#include <span>
#include <string>
#include <vector>

namespace auspex {

class LlamaModel;
struct PassRequest; // session/measure/pass_meter.h

constexpr int32_t kMostPriority = 10;
constexpr uint32_t kHoldTokens = 0xffffffffu; // max_tokens of a sequence that only reads its prompt

struct SequenceRequest {
    std::vector<uint32_t> prompt; // at least one token; unused by forks
    uint32_t max_tokens = 0;      // 0: until the context is full; kHoldTokens: read the prompt only
    SamplingParams sampling;
    uint32_t draft_len = 0;       // kAutoDraftLen: chosen each round
    bool ignore_eos = false;
    DrafterChoice drafter = DrafterChoice::model;
    uint32_t ngram_max = 4;       // tokens of the longest n-gram looked for
    HostDrafter host_drafter = {}; // of drafters that ask the host
    std::vector<std::string> stop_texts = {}; // each ends the answer and is no part of it
    int32_t priority = 0; // lower is let in first; of forks and appended parts it counts as of any
    uint32_t with_logprobs = 0;   // 1: log-probabilities of what is generated are wanted,
    uint32_t n_logprobs = 0;      // and of so many of the most probable tokens each time
    std::string cache_salt = {};  // beginnings are shared with those of the same alone; of forks and appended parts it does not count

    const Drafters* drafters = &Drafters::built_in(); // the engine's

    const DrafterChoiceRow& who() const { return *drafters->find(drafter); }
    // Whether passes of a model may draft at all; and if there were drafts to be asked for.
    bool may_use_model() const { return draft_len > 0 && names_model(); }
    bool names_model() const { return drafters->passes(who()); }
    // Whether the history is searched for drafts, and whether somebody is asked.
    bool searches() const { return draft_len > 0 && drafters->searches(who()); }
    bool asks() const { return drafters->asks(who()); }
    // Whether drafts may come that cost no pass.
    bool may_use_proposals() const { return searches() || asks(); }
};

// The answers are invalid_argument where it never could be done, capacity where the context has no room for it.
class RequestChecks {
  public:
    struct Limits {
        uint32_t vocab = 0, max_context = 0, max_draft_len = 0;
        Drafter with_passes = Drafter::none; // of the engine
        bool has_tokenizer = false;
    };
    RequestChecks() = default;
    RequestChecks(const Drafters& drafters, const Limits& limits) : drafters_(&drafters), limits_(limits) {}

    // Completes it, too: it gets the engine's drafters, and what it asks of a drafter that the engine lacks is replaced.
    Status check(SequenceRequest& request) const;
    // Of one that was checked, what its use asks besides.
    Status check_new(const SequenceRequest& request) const;
    Status check_fork(const SequenceRequest& request) const;
    Status check_scored(std::span<const uint32_t> tokens) const;

  private:
    Status check_tokens(std::span<const uint32_t> tokens) const;
    Status check_sampling(const SamplingParams& sampling) const;
    Status check_biases(std::span<const TokenBias> biases) const;

    const Drafters* drafters_ = &Drafters::built_in();
    Limits limits_;
};

// model: whose pass is to be measured; null: there is none.
Status check_pass(const PassRequest& request, const LlamaModel* model);
Status check_repetitions(uint32_t repetitions);
Status no_tokenizer();

} // namespace auspex
