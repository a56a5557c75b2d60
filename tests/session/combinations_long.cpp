// Lossless in combination: fifteen ways of drafting × transforming × accepting, such that every two of them meet, each
// 200,000 completions in 64 slots against exact enumeration with the transforms applied.
#include "session/completions.h"

#include <cmath>

namespace auspex::combinations_long {
namespace {

using namespace test;

constexpr double kAlpha = 1e-5;
constexpr uint32_t kVocab = 5, kTokens = 3, kCompletions = 200'000;

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
    const char* names[5][3] = {{"model_edits", "model_cuts", "model_both"}, {"ngram_edits", "lookup_cuts", "ngram_both"},
                               {"hybrid_edits", "hybrid_cuts", "hybrid_both"}, {"host_edits", "host_cuts", "host_both"},
                               {"self_edits", "self_cuts", "self_both"}};
    for (uint32_t d = 0; d < 5; ++d)
        for (uint32_t t = 0; t < 3; ++t) {
            Combination c = {d == 0   ? DrafterChoice::model
                             : d == 1 ? (t == 1 ? DrafterChoice::lookup : DrafterChoice::ngram)
                             : d == 2 ? DrafterChoice::hybrid
                             : d == 3 ? DrafterChoice::host
                                      : DrafterChoice::self,
                             t == 0 ? edits : t == 1 ? cuts : both, names[d][t]};
            c.sampling.acceptance = (d + t) % 2 ? AcceptanceRule::coupled : AcceptanceRule::rejection;
            all.push_back(c);
        }
    return all;
}

class Combinations : public ::testing::TestWithParam<Combination> {};

TEST_P(Combinations, are_lossless) {
    const Combination& c = GetParam();
    EngineDesc desc = tiny_engine(kVocab, 65, 3, c.drafter != DrafterChoice::self);
    if (c.drafter == DrafterChoice::self) desc.self_draft = SelfDraft::q4_0;
    auto engine = make_engine(desc);
    ASSERT_TRUE(engine);
    const std::vector<uint32_t> prompt = {0, 2, 3, 4, 0, 2, 3, 1, 0, 2, 3, 4, 0, 2};
    const uint32_t ngram_max = c.drafter == DrafterChoice::lookup ? 2 : 3; // both look for two tokens: three seldom come again here
    SequenceRequest request = {{}, kTokens, c.sampling, 3, true, c.drafter, ngram_max};
    if (c.drafter == DrafterChoice::host)
        request.host_drafter = [](std::span<const uint32_t> tokens, uint32_t max_drafts) { return arbitrary_drafts(tokens, max_drafts, kVocab); };
    const Completions found = count_completions(*engine, prompt, request, kCompletions, 0x5eed00000000);
    ASSERT_FALSE(HasFatalFailure());
    EXPECT_GT(found.drafted, kCompletions / 20) << "next to nothing was drafted";
    const double temperature = double(c.sampling.temperature);
    const auto fit = fit_completions(found.counts, kVocab, kTokens, prompt, temperature, c.sampling);
    EXPECT_GT(fit.p_value, kAlpha) << "chi-square " << fit.statistic << " in " << fit.bins << " bins " << fit.note;
    // Negative controls: the target without its transforms, and a temperature that is 3 % off.
    EXPECT_LT(fit_completions(found.counts, kVocab, kTokens, prompt, temperature).p_value, kAlpha);
    EXPECT_LT(fit_completions(found.counts, kVocab, kTokens, prompt, temperature * 1.03, c.sampling).p_value, kAlpha);
    std::printf("%s: p %.4f, %llu drafted, %llu accepted\n", c.name, fit.p_value, static_cast<unsigned long long>(found.drafted), static_cast<unsigned long long>(found.accepted));
}

INSTANTIATE_TEST_SUITE_P(, Combinations, ::testing::ValuesIn(combinations()), [](const auto& at) { return at.param.name; });

} // namespace
} // namespace auspex::combinations_long
