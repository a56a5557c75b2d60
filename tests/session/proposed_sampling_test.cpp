// Drafts that were proposed, not sampled, leave the target's distribution as it is: against exact enumeration.
#include "model/reference_checkpoint.h"
#include "reference/statistics.h"
#include "session/engine_fixture.h"
#include "test_shaders.h"

namespace auspex {
namespace {

using namespace test;

constexpr double kAlpha = 1e-6;
constexpr uint32_t kVocab = 3, kTokens = 6; // 729 completions: long enough that searches find something

SyntheticModel tiny(uint64_t seed) {
    return random_model({.d = 32, .layers = 1, .heads = 1, .kv_heads = 1, .head_dim = 32, .ffn = 40, .vocab = kVocab, .scale = 0.3f}, seed, 64);
}

EngineDesc target_only() {
    EngineDesc desc;
    desc.target_synthetic = tiny(1);
    desc.max_sequences = 128;
    desc.max_context = 64;
    desc.max_draft_len = 4;
    desc.cache_dtype = DType::f32;
    return desc;
}

struct Case {
    DrafterChoice drafter;
    uint32_t draft_len;
    float temperature;
    uint64_t completions;
};

// Any function of the tokens so far will do.
std::vector<uint32_t> host_says(std::span<const uint32_t> tokens, uint32_t max_drafts) {
    std::vector<uint32_t> drafts;
    for (uint32_t i = 0; i < max_drafts; ++i) drafts.push_back(static_cast<uint32_t>(tokens.size() + tokens.back() * 2 + i) % kVocab);
    return drafts;
}

struct Found {
    reference::Fit fit;
    uint64_t drafted = 0, accepted = 0;
};
Found judge(Engine& engine, const Case& c, uint64_t first_seed) {
    const std::vector<uint32_t> prompt = {0, 1, 2, 2, 0, 1, 1, 2, 0};
    std::vector<uint64_t> counts(729);
    Found found;
    auto source = engine.create_sequence({prompt, kHoldTokens, {}});
    EXPECT_TRUE(source.ok()) << source.status().message();
    for (uint64_t done = 0; source.ok() && done < c.completions;) {
        std::vector<uint64_t> ids;
        for (uint32_t i = 1; i < engine.max_sequences(); ++i, ++done) {
            SequenceRequest request = {{}, kTokens, {c.temperature, first_seed + done}, c.draft_len, true, c.drafter, 3};
            if (c.drafter == DrafterChoice::host) request.host_drafter = host_says;
            auto id = engine.fork_sequence(source.value(), std::move(request));
            EXPECT_TRUE(id.ok()) << id.status().message();
            if (!id.ok()) return found;
            ids.push_back(id.value());
        }
        drive(engine);
        if (::testing::Test::HasFatalFailure()) return found;
        for (uint64_t id : ids) {
            const LiveSequence* sequence = engine.scheduler().find(id);
            EXPECT_EQ(sequence->output.size(), kTokens);
            uint32_t at = 0;
            for (const OutputToken& token : sequence->output) at = at * kVocab + token.id;
            counts[at] += 1;
            found.drafted += sequence->stats.draft_n;
            found.accepted += sequence->stats.draft_n_accepted;
            EXPECT_TRUE(engine.scheduler().destroy(id).ok());
        }
    }
    if (source.ok()) { EXPECT_TRUE(engine.scheduler().destroy(source.value()).ok()); }
    found.fit = reference::fit(counts, reference_model(tiny(1), false).enumerate(prompt, kTokens, static_cast<double>(c.temperature)));
    return found;
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
} // namespace auspex
