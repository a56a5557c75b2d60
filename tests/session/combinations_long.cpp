// Lossless in combination: twelve ways of drafting × transforming × accepting, such that every two of them meet, each
// 200,000 completions in 64 slots against exact enumeration with the transforms applied.
#include "model/reference_checkpoint.h"
#include "reference/statistics.h"
#include "session/engine_fixture.h"

#include <cmath>

namespace auspex {
namespace {

using namespace test;

constexpr double kAlpha = 1e-5;
constexpr uint32_t kVocab = 5, kTokens = 3, kCompletions = 200'000;

SyntheticModel tiny(uint64_t seed) {
    return random_model({.d = 32, .layers = 1, .heads = 1, .kv_heads = 1, .head_dim = 32, .ffn = 40, .vocab = kVocab, .scale = 0.3f}, seed, 64);
}

struct Combination {
    DrafterChoice drafter;
    SamplingParams sampling;
    const char* name;
};

std::vector<Combination> combinations() {
    SamplingParams edits, cuts, both;
    edits.temperature = 1.0f;
    edits.repeat_penalty = 1.4f;
    edits.presence_penalty = 0.3f;
    edits.frequency_penalty = 0.4f;
    edits.biases = {{1, -INFINITY}, {3, 0.8f}};
    cuts.temperature = 1.3f;
    cuts.top_k = 4;
    cuts.top_p = 0.85f;
    both.temperature = 0.8f;
    both.min_p = 0.08f;
    both.frequency_penalty = 0.6f;
    std::vector<Combination> all;
    const char* names[4][3] = {{"model_edits", "model_cuts", "model_both"}, {"ngram_edits", "lookup_cuts", "ngram_both"},
                               {"hybrid_edits", "hybrid_cuts", "hybrid_both"}, {"host_edits", "host_cuts", "host_both"}};
    for (uint32_t d = 0; d < 4; ++d)
        for (uint32_t t = 0; t < 3; ++t) {
            Combination c = {d == 0   ? DrafterChoice::model
                             : d == 1 ? (t == 1 ? DrafterChoice::lookup : DrafterChoice::ngram)
                             : d == 2 ? DrafterChoice::hybrid
                                      : DrafterChoice::host,
                             t == 0 ? edits : t == 1 ? cuts : both, names[d][t]};
            c.sampling.acceptance = (d + t) % 2 ? AcceptanceRule::coupled : AcceptanceRule::rejection;
            all.push_back(c);
        }
    return all;
}

std::vector<uint32_t> host_says(std::span<const uint32_t> tokens, uint32_t max_drafts) {
    std::vector<uint32_t> drafts;
    for (uint32_t i = 0; i < max_drafts; ++i) drafts.push_back(static_cast<uint32_t>(tokens.size() + tokens.back() * 2 + i) % kVocab);
    return drafts;
}

class Combinations : public ::testing::TestWithParam<Combination> {};

TEST_P(Combinations, are_lossless) {
    const Combination& c = GetParam();
    EngineDesc desc;
    desc.target_synthetic = tiny(1);
    desc.draft_synthetic = tiny(2);
    desc.max_sequences = 65;
    desc.max_context = 64;
    desc.max_draft_len = 3;
    desc.cache_dtype = DType::f32;
    auto engine = make_engine(desc);
    ASSERT_TRUE(engine);
    const std::vector<uint32_t> prompt = {0, 2, 3, 4, 0, 2, 3, 1, 0, 2, 3, 4, 0, 2};
    auto source = engine->create_sequence({prompt, kHoldTokens, c.sampling, 3, true, c.drafter == DrafterChoice::host ? DrafterChoice::none : c.drafter});
    ASSERT_TRUE(source.ok()) << source.status().message();
    std::vector<uint64_t> counts(kVocab * kVocab * kVocab);
    uint64_t drafted = 0, accepted = 0;
    for (uint64_t done = 0; done < kCompletions;) {
        std::vector<uint64_t> ids;
        for (uint32_t i = 1; i < engine->max_sequences(); ++i, ++done) {
            SequenceRequest request = {{}, kTokens, c.sampling, 3, true, c.drafter, 3};
            request.sampling.seed = 0x5eed00000000 + done;
            if (c.drafter == DrafterChoice::host) request.host_drafter = host_says;
            auto id = engine->fork_sequence(source.value(), std::move(request));
            ASSERT_TRUE(id.ok()) << id.status().message();
            ids.push_back(id.value());
        }
        drive(*engine);
        ASSERT_FALSE(HasFatalFailure());
        for (uint64_t id : ids) {
            const LiveSequence& sequence = *engine->scheduler().find(id);
            ASSERT_EQ(sequence.output.size(), kTokens);
            uint32_t at = 0;
            for (const OutputToken& token : sequence.output) at = at * kVocab + token.id;
            counts[at] += 1;
            drafted += sequence.stats.draft_n;
            accepted += sequence.stats.draft_n_accepted;
            ASSERT_TRUE(engine->scheduler().destroy(id).ok());
        }
    }
    EXPECT_GT(drafted, kCompletions / 20) << "next to nothing was drafted";
    const SamplingParams& s = c.sampling;
    reference::Transforms transforms = {double(s.repeat_penalty), double(s.presence_penalty), double(s.frequency_penalty), {}, s.top_k, double(s.top_p), double(s.min_p)};
    for (const TokenBias& one : s.biases) transforms.biases.emplace_back(one.token, double(one.bias));
    const auto model = reference_model(tiny(1), false);
    const auto fit = reference::fit(counts, model.enumerate(prompt, kTokens, double(s.temperature), std::nullopt, transforms));
    EXPECT_GT(fit.p_value, kAlpha) << "chi-square " << fit.statistic << " in " << fit.bins << " bins " << fit.note;
    // Negative controls: the target without its transforms, and a temperature that is 3 % off.
    EXPECT_LT(reference::fit(counts, model.enumerate(prompt, kTokens, double(s.temperature))).p_value, kAlpha);
    EXPECT_LT(reference::fit(counts, model.enumerate(prompt, kTokens, double(s.temperature) * 1.03, std::nullopt, transforms)).p_value, kAlpha);
    std::printf("%s: p %.4f, %llu drafted, %llu accepted\n", c.name, fit.p_value, static_cast<unsigned long long>(drafted), static_cast<unsigned long long>(accepted));
}

INSTANTIATE_TEST_SUITE_P(, Combinations, ::testing::ValuesIn(combinations()), [](const auto& at) { return at.param.name; });

} // namespace
} // namespace auspex
