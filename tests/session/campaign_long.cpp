// Longer than the suite has time for: every draft_len there is on more and longer texts, and a million completions.
#include "session/prompts.h"
#include "session/sampling_rig.h"

namespace auspex::campaign_long {
namespace {

using namespace test;

TEST(Campaign, greedy_text_is_plain_text_at_every_draft_len) {
    EngineDesc desc = bundled_pair(16, 512);
    desc.max_draft_len = kMaxDraft;
    auto engine = make_engine(desc);
    ASSERT_TRUE(engine);
    std::vector<Job> jobs;
    for (const auto& prompt : bundled_prompts(*engine, true)) jobs.push_back({.prompt = prompt}); // to the end of the context
    const auto plain = run_jobs(*engine, jobs);
    for (uint32_t draft_len = 1; draft_len <= kMaxDraft; ++draft_len) {
        for (Job& job : jobs) job.draft_len = draft_len;
        const auto answers = run_jobs(*engine, jobs);
        for (size_t i = 0; i < jobs.size(); ++i) {
            EXPECT_EQ(answers[i].tokens, plain[i].tokens) << "prompt " << i << ", draft_len " << draft_len;
            EXPECT_EQ(answers[i].stop, StopReason::context);
        }
    }
}

TEST(Campaign, completions_have_the_targets_distribution) {
    auto engine = make_engine(sampling::tiny_pair(256));
    ASSERT_TRUE(engine);
    for (uint32_t draft_len : {0u, 1u, 2u, 3u}) {
        const auto prompt = random_prompt(17, sampling::kVocab, 3);
        const auto counts = sampling::complete(*engine, prompt, {draft_len, 1.0f, 17, 1000000}, 1 + (uint64_t{draft_len} << 40));
        ASSERT_FALSE(HasFatalFailure());
        const auto fit = sampling::judge(counts, prompt, 1.0);
        EXPECT_GT(fit.p_value, sampling::kAlpha) << "draft_len " << draft_len << ": chi-square " << fit.statistic << " in " << fit.bins << " bins " << fit.note;
    }
}

} // namespace
} // namespace auspex::campaign_long
