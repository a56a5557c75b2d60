// Drafts that were proposed, not sampled, leave the target's distribution as it is: against exact enumeration.
#include "session/completions.h"
#include "test_shaders.h"

namespace auspex::proposed_sampling_test {
namespace {

using namespace test;

constexpr double kAlpha = 1e-6;
constexpr uint32_t kVocab = 3, kTokens = 6; // 729 completions: long enough that searches find something

EngineDesc target_only() { return tiny_engine(kVocab, 128, 4, false); }

struct Case {
    DrafterChoice drafter;
    uint32_t draft_len;
    float temperature;
    uint64_t completions;
};

struct Found {
    reference::Fit fit;
    uint64_t drafted = 0, accepted = 0;
};
Found judge(Engine& engine, const Case& c, uint64_t first_seed) {
    const std::vector<uint32_t> prompt = {0, 1, 2, 2, 0, 1, 1, 2, 0};
    SequenceRequest request = {{}, kTokens, {c.temperature, 0}, c.draft_len, true, c.drafter, 3};
    if (c.drafter == DrafterChoice::host)
        request.host_drafter = [](std::span<const uint32_t> tokens, uint32_t max_drafts) { return arbitrary_drafts(tokens, max_drafts, kVocab); };
    const Completions found = count_completions(engine, prompt, request, c.completions, first_seed);
    return {fit_completions(found.counts, kVocab, kTokens, prompt, static_cast<double>(c.temperature)), found.drafted, found.accepted};
}

TEST(ProposedSampling, completions_have_the_targets_distribution) {
    auto engine = make_engine(target_only());
    ASSERT_TRUE(engine);
    uint64_t seed = 1;
    for (const Case& c : {Case{DrafterChoice::ngram, 4, 1.0f, 12000}, Case{DrafterChoice::lookup, 3, 1.0f, 12000}, Case{DrafterChoice::host, 2, 1.4f, 12000}}) {
        const Found found = judge(*engine, c, seed += 1'000'000);
        ASSERT_FALSE(HasFatalFailure());
        EXPECT_GT(found.fit.p_value, kAlpha) << "drafter " << static_cast<int>(c.drafter) << ", draft_len " << c.draft_len << ": chi-square " << found.fit.statistic
                                             << " in " << found.fit.bins << " bins " << found.fit.note;
        EXPECT_GT(found.drafted, c.completions / 2);
        EXPECT_GT(found.accepted, found.drafted / 10);
        EXPECT_LT(found.accepted, found.drafted * 9 / 10);
        RecordProperty("p_" + std::to_string(static_cast<int>(c.drafter)) + "_" + std::to_string(c.draft_len), std::to_string(found.fit.p_value));
    }
}

// The residual of a draft that was proposed is the target without that token: a shader that leaves it in must be seen.
TEST(ProposedSampling, a_rejected_token_that_may_come_back_is_seen) {
    for (DrafterChoice drafter : {DrafterChoice::ngram, DrafterChoice::lookup, DrafterChoice::host}) {
        auto engine = make_engine(target_only());
        ASSERT_TRUE(engine);
        for (const std::string variant : {"accept_race", "accept_race.subgroup"}) {
            const auto spirv = test_shader(variant + ".fault8");
            ASSERT_FALSE(spirv.empty());
            engine->kernels().replace(variant, spirv);
        }
        EXPECT_LT(judge(*engine, {drafter, 3, 1.0f, 6000}, 7).fit.p_value, kAlpha) << "drafter " << static_cast<int>(drafter);
    }
}

} // namespace
} // namespace auspex::proposed_sampling_test
