// Engines that draft by a copy of their target, and what is asked of them, for short and long tests.
#pragma once

#include "session/completions.h"

namespace auspex::test::self_drafts {

inline constexpr uint32_t kVocab = 97;

inline EngineDesc with_copy(SelfDraft self, uint32_t slots = 1, DType cache = DType::f16) {
    EngineDesc desc;
    desc.target_synthetic = random_model({.d = 256, .layers = 2, .heads = 4, .kv_heads = 2, .head_dim = 64, .ffn = 256, .vocab = kVocab, .dtype = DType::bf16, .scale = 0.08f}, 3);
    desc.self_draft = self;
    desc.max_sequences = slots;
    desc.max_context = 192;
    desc.cache_dtype = cache;
    return desc;
}

inline std::vector<Job> jobs_of(uint32_t n, uint32_t draft_len, float temperature, DrafterChoice drafter = DrafterChoice::self) {
    std::vector<Job> jobs;
    for (uint32_t i = 0; i < n; ++i)
        jobs.push_back({.prompt = random_prompt(1 + i * 13 % 61, kVocab, i), .max_tokens = 60, .draft_len = draft_len, .temperature = temperature, .seed = i + 1, .drafter = drafter,
                        .acceptance = AcceptanceRule::coupled});
    return jobs;
}

struct Sum {
    uint64_t rounds = 0, drafted = 0, accepted = 0;
    void add(const SequenceStats& stats) {
        rounds += stats.drafter_rounds[static_cast<size_t>(Drafter::self)];
        drafted += stats.draft_n;
        accepted += stats.draft_n_accepted;
    }
};

inline constexpr const char* kSelfDraftNames[] = {"none", "as_is", "q4_0", "q4_k", "q8_0"}; // by SelfDraft

inline constexpr uint32_t kFew = 5; // tokens

inline EngineDesc tiny_with_copy() {
    EngineDesc desc = tiny_engine(kFew, 128, 4, false);
    desc.self_draft = SelfDraft::q4_0;
    return desc;
}

// Rejection, whose q is the copy's, against exact enumeration of 625 texts.
inline reference::Fit fit_of(Engine& engine, uint64_t n, Completions& found) {
    constexpr uint32_t kTokens = 4;
    const std::vector<uint32_t> prompt = {0, 1, 4, 2, 0, 3};
    found = count_completions(engine, prompt, {{}, kTokens, {1.0f, 0}, 3, true, DrafterChoice::self}, n, 3'000'000);
    return ::testing::Test::HasFatalFailure() ? reference::Fit{} : fit_completions(found.counts, kFew, kTokens, prompt, 1.0);
}

inline void expect_the_targets_distribution(uint64_t n) {
    auto engine = make_engine(tiny_with_copy());
    ASSERT_TRUE(engine);
    Completions found;
    const reference::Fit fit = fit_of(*engine, n, found);
    ASSERT_FALSE(::testing::Test::HasFatalFailure());
    EXPECT_GT(fit.p_value, 1e-6) << "chi-square " << fit.statistic << " in " << fit.bins << " bins " << fit.note;
    EXPECT_GT(found.drafted, n);
    EXPECT_LT(found.accepted, found.drafted);
}

} // namespace auspex::test::self_drafts
