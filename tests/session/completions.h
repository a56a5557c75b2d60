// Completions of tiny random models through the whole engine, counted, beside their exact distribution.
#pragma once

#include "model/reference_checkpoint.h"
#include "reference/statistics.h"
#include "session/engine_fixture.h"

namespace auspex::test {

inline SyntheticModel tiny_model(uint32_t vocab, uint64_t seed) {
    return random_model({.d = 32, .layers = 1, .heads = 1, .kv_heads = 1, .head_dim = 32, .ffn = 40, .vocab = vocab, .scale = 0.3f}, seed, 64);
}

// The target has seed 1, the draft seed 2.
inline EngineDesc tiny_engine(uint32_t vocab, uint32_t slots, uint32_t max_draft_len, bool has_draft) {
    EngineDesc desc;
    desc.target_synthetic = tiny_model(vocab, 1);
    if (has_draft) desc.draft_synthetic = tiny_model(vocab, 2);
    desc.max_sequences = slots;
    desc.max_context = 64;
    desc.max_draft_len = max_draft_len;
    desc.cache_dtype = DType::f32;
    return desc;
}

struct Completions {
    std::vector<uint64_t> counts; // (vocab^max_tokens), first token slowest
    uint64_t drafted = 0, accepted = 0;
};

// By forking a prompt that is read once, in as many slots as there are but one. request: of every fork, but for the seed.
inline Completions count_completions(Engine& engine, const std::vector<uint32_t>& prompt, const SequenceRequest& request, uint64_t n, uint64_t first_seed) {
    const uint32_t vocab = engine.target().config().vocab_size;
    Completions found;
    size_t n_texts = 1;
    for (uint32_t i = 0; i < request.max_tokens; ++i) n_texts *= vocab;
    found.counts.resize(n_texts);
    SequenceRequest held = request;
    held.prompt = prompt;
    held.max_tokens = kHoldTokens;
    if (held.host_drafter) held.drafter = DrafterChoice::none;
    held.host_drafter = {};
    auto source = engine.create_sequence(held);
    EXPECT_TRUE(source.ok()) << source.status().message();
    for (uint64_t done = 0; source.ok() && done < n;) {
        std::vector<uint64_t> ids;
        for (uint32_t i = 1; i < engine.max_sequences(); ++i, ++done) {
            SequenceRequest fork = request;
            fork.sampling.seed = first_seed + done;
            auto id = engine.fork_sequence(source.value(), std::move(fork));
            EXPECT_TRUE(id.ok()) << id.status().message();
            if (!id.ok()) return found;
            ids.push_back(id.value());
        }
        drive(engine);
        if (::testing::Test::HasFatalFailure()) return found;
        for (uint64_t id : ids) {
            const LiveSequence& sequence = *find_sequence(engine, id);
            EXPECT_EQ(sequence.stop, StopReason::length);
            EXPECT_EQ(sequence.output.size(), request.max_tokens);
            if (sequence.output.size() != request.max_tokens) return found;
            size_t at = 0;
            for (const OutputToken& token : sequence.output) at = at * vocab + token.id;
            found.counts[at] += 1;
            found.drafted += sequence.stats.draft_n;
            found.accepted += sequence.stats.draft_n_accepted;
            EXPECT_TRUE(destroy_sequence(engine, id).ok());
        }
    }
    if (source.ok()) { EXPECT_TRUE(destroy_sequence(engine, source.value()).ok()); }
    return found;
}

inline reference::Transforms transforms_of(const SamplingParams& s) {
    reference::Transforms transforms = {double(s.repeat_penalty), double(s.presence_penalty), double(s.frequency_penalty), {}, s.top_k, double(s.top_p), double(s.min_p)};
    for (const TokenBias& one : s.biases) transforms.biases.emplace_back(one.token, double(one.bias));
    return transforms;
}

// Whether the counts are those of the tiny target at this temperature, after these transforms.
inline reference::Fit fit_completions(const std::vector<uint64_t>& counts, uint32_t vocab, uint32_t n_tokens, const std::vector<uint32_t>& prompt,
                                      double temperature, const SamplingParams& transforms = {}) {
    return reference::fit(counts, reference_model(tiny_model(vocab, 1), false).enumerate(prompt, n_tokens, temperature, std::nullopt, transforms_of(transforms)));
}

// A host's drafts: any function of the tokens so far will do.
inline std::vector<uint32_t> arbitrary_drafts(std::span<const uint32_t> tokens, uint32_t max_drafts, uint32_t vocab) {
    std::vector<uint32_t> drafts;
    for (uint32_t i = 0; i < max_drafts; ++i) drafts.push_back(static_cast<uint32_t>(tokens.size() + tokens.back() * 2 + i) % vocab);
    return drafts;
}

} // namespace auspex::test
