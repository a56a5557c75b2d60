// Every message says what was found and what was expected.
#include "session/request.h"

#include "session/measure/pass_meter.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace auspex {

namespace {
Status wrong(const char* name, float found, const char* expected) {
    return {Code::invalid_argument, std::string(name) + " is " + std::to_string(found) + ", expected " + expected};
}
} // namespace

Status RequestChecks::check_tokens(std::span<const uint32_t> tokens) const {
    for (size_t i = 0; i < tokens.size(); ++i)
        if (tokens[i] >= limits_.vocab)
            return {Code::invalid_argument, "prompt token " + std::to_string(i) + " is " + std::to_string(tokens[i]) +
                                                ", expected an id below the vocabulary's " + std::to_string(limits_.vocab)};
    return ok_status();
}

Status RequestChecks::check_sampling(const SamplingParams& sampling) const {
    if (!(sampling.temperature >= 0) || !std::isfinite(sampling.temperature)) return wrong("temperature", sampling.temperature, "a number of at least 0");
    // Below this, 1 / temperature times a logit leaves the range of f32.
    if (sampling.temperature > 0 && sampling.temperature < 1e-4f) return wrong("temperature", sampling.temperature, "0 or at least 0.0001");
    if (!(sampling.repeat_penalty >= 0.01f && sampling.repeat_penalty <= 100)) return wrong("repeat_penalty", sampling.repeat_penalty, "0.01 to 100");
    if (!(std::abs(sampling.presence_penalty) <= 100)) return wrong("presence_penalty", sampling.presence_penalty, "-100 to 100");
    if (!(std::abs(sampling.frequency_penalty) <= 100)) return wrong("frequency_penalty", sampling.frequency_penalty, "-100 to 100");
    if (!(sampling.top_p >= 0 && sampling.top_p <= 1)) return wrong("top_p", sampling.top_p, "0 to 1");
    if (!(sampling.min_p >= 0 && sampling.min_p <= 1)) return wrong("min_p", sampling.min_p, "0 to 1");
    if (!(sampling.lenience > 0 && sampling.lenience <= 1)) return wrong("lenience", sampling.lenience, "more than 0, at most 1");
    if (sampling.lenience < 1 && sampling.acceptance == AcceptanceRule::coupled && sampling.temperature > 0)
        return {Code::invalid_argument, "lenience and coupled acceptance were both asked for; expected one of them: coupled text is the plain text"};
    if (!(sampling.simulated_alpha >= 0 && sampling.simulated_alpha <= 1)) return wrong("the simulated acceptance's alpha", sampling.simulated_alpha, "0 to 1");
    if (sampling.acceptance == AcceptanceRule::simulated && sampling.lenience < 1)
        return {Code::invalid_argument, "lenience and a simulated acceptance were both asked for, expected one of them"};
    return check_biases(sampling.biases);
}

Status RequestChecks::check_biases(std::span<const TokenBias> biases) const {
    if (biases.size() > gpu::kMaxBiases)
        return {Code::invalid_argument, std::to_string(biases.size()) + " token biases were given, expected at most " + std::to_string(gpu::kMaxBiases)};
    std::set<uint32_t> seen;
    size_t n_banned = 0;
    for (const TokenBias& bias : biases) {
        if (bias.token >= limits_.vocab)
            return {Code::invalid_argument, "the biased token " + std::to_string(bias.token) + " is not in the vocabulary, expected an id below " + std::to_string(limits_.vocab)};
        if (!seen.insert(bias.token).second) return {Code::invalid_argument, "token " + std::to_string(bias.token) + " has two biases, expected one"};
        if (std::isnan(bias.bias) || bias.bias > 1e6f || (bias.bias < -1e6f && std::isfinite(bias.bias)))
            return wrong("a token's bias", bias.bias, "-1000000 to 1000000, or minus infinity to ban it");
        n_banned += std::isfinite(bias.bias) ? 0 : 1;
    }
    if (n_banned == limits_.vocab) return {Code::invalid_argument, "every token is banned, expected at least one that may be said"};
    return ok_status();
}

Status RequestChecks::check(SequenceRequest& request) const {
    if (request.draft_len > limits_.max_draft_len && request.draft_len != kAutoDraftLen)
        return {Code::invalid_argument, "draft_len is " + std::to_string(request.draft_len) + ", expected at most max_draft_len " + std::to_string(limits_.max_draft_len)};
    AUSPEX_TRY(check_sampling(request.sampling));
    request.drafters = drafters_;
    if (!drafters_->find(request.drafter)) return {Code::invalid_argument, "drafter is " + std::to_string(static_cast<uint32_t>(request.drafter)) + ", expected one of auspex_drafter"};
    if (request.names_model() && request.who().by_pass != limits_.with_passes) request.drafter = request.who().without_pass;
    const bool asks_caller = request.asks() && !drafters_->of(request.who().proposer).ask;
    if (asks_caller != bool(request.host_drafter))
        return {Code::invalid_argument, request.host_drafter ? "a host's drafter was given, expected the drafter to be chosen as host"
                                                             : "the drafter is the host's, expected a callback"};
    if (request.ngram_max < 2 || request.ngram_max > gpu::kMaxPath)
        return {Code::invalid_argument, "ngram_max is " + std::to_string(request.ngram_max) + ", expected 2 to " + std::to_string(gpu::kMaxPath)};
    if (request.priority < -kMostPriority || request.priority > kMostPriority)
        return {Code::invalid_argument, "priority is " + std::to_string(request.priority) + ", expected -" + std::to_string(kMostPriority) + " to " + std::to_string(kMostPriority)};
    if (request.with_logprobs > 1) return {Code::invalid_argument, "with_logprobs is " + std::to_string(request.with_logprobs) + ", expected 0 or 1"};
    if (request.n_logprobs > kMostLogprobs)
        return {Code::invalid_argument, "n_logprobs is " + std::to_string(request.n_logprobs) + ", expected at most " + std::to_string(kMostLogprobs)};
    if (request.n_logprobs > 0 && request.with_logprobs == 0)
        return {Code::invalid_argument, "n_logprobs is " + std::to_string(request.n_logprobs) + " and with_logprobs 0, expected with_logprobs to be 1"};
    if (std::any_of(request.stop_texts.begin(), request.stop_texts.end(), [](const std::string& text) { return text.empty(); }))
        return {Code::invalid_argument, "a stop text is empty, expected at least one byte"};
    if (!request.stop_texts.empty() && !limits_.has_tokenizer) return no_tokenizer();
    return check_tokens(request.prompt);
}

Status RequestChecks::check_new(const SequenceRequest& request) const {
    const size_t n = request.prompt.size();
    if (n == 0) return {Code::invalid_argument, "the prompt is empty, expected at least one token"};
    if (n >= limits_.max_context)
        return {Code::capacity, "the prompt has " + std::to_string(n) + " tokens, which leaves no room in the context of " + std::to_string(limits_.max_context) +
                                    "; shorten it or raise the context"};
    return ok_status();
}

Status RequestChecks::check_fork(const SequenceRequest& request) const {
    if (request.prompt.empty()) return ok_status();
    return {Code::invalid_argument, "a fork takes its source's tokens; its own prompt must be empty"};
}

Status RequestChecks::check_scored(std::span<const uint32_t> tokens) const {
    if (tokens.empty()) return {Code::invalid_argument, "there are no tokens to score, expected at least one"};
    AUSPEX_TRY(check_tokens(tokens));
    if (tokens.size() > limits_.max_context)
        return {Code::capacity, std::to_string(tokens.size()) + " tokens were to be scored, expected at most the context of " + std::to_string(limits_.max_context)};
    return ok_status();
}

Status check_pass(const PassRequest& request, const LlamaModel* model) {
    if (!model) return {Code::invalid_argument, "a pass of the draft was asked for, expected an engine with a draft model"};
    if (request.n_rows == 0 || request.n_rows > model->max_rows())
        return {Code::invalid_argument, "n_rows is " + std::to_string(request.n_rows) + ", expected 1 to " + std::to_string(model->max_rows())};
    const uint32_t context = model->cache().shape().max_rows;
    if (request.depth >= context || request.n_rows > context - request.depth)
        return {Code::capacity, std::to_string(request.n_rows) + " rows after " + std::to_string(request.depth) +
                                    " were to be measured, expected at most the context of " + std::to_string(context)};
    return check_repetitions(request.repetitions);
}

Status check_repetitions(uint32_t repetitions) {
    if (repetitions == 0 || repetitions > 1000)
        return {Code::invalid_argument, "repetitions is " + std::to_string(repetitions) + ", expected 1 to 1000"};
    return ok_status();
}

Status no_tokenizer() {
    return {Code::unsupported, "this engine's model is synthetic and has no tokenizer; give the prompt as token ids"};
}

} // namespace auspex
