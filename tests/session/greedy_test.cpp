// Greedy text with speculation is greedy text without it, token for token, on the bundled pair.
#include "session/prompts.h"

namespace auspex::greedy_test {
namespace {

using namespace test;

constexpr uint32_t kTokens = 200;

// One engine for all tests of this file; plain text is made once.
struct Bundled {
    std::unique_ptr<Engine> engine;
    std::vector<std::vector<uint32_t>> prompts;
    std::vector<Answer> plain;

    std::vector<Job> jobs(uint32_t draft_len) const {
        std::vector<Job> jobs;
        for (const auto& prompt : prompts) jobs.push_back({.prompt = prompt, .max_tokens = kTokens, .draft_len = draft_len});
        return jobs;
    }
};
Bundled& bundled() {
    static Bundled shared = [] {
        Bundled made;
        made.engine = make_engine(bundled_pair(8, 480));
        if (!made.engine) return made;
        made.prompts = bundled_prompts(*made.engine);
        made.plain = run_jobs(*made.engine, made.jobs(0));
        return made;
    }();
    return shared;
}

class BundledGreedy : public ::testing::TestWithParam<uint32_t> {};

TEST_P(BundledGreedy, speculative_text_is_plain_text) {
    ASSERT_TRUE(bundled().engine);
    ASSERT_GE(bundled().prompts.size(), 20u);
    const std::vector<Job> jobs = bundled().jobs(GetParam());
    const std::vector<Answer> answers = run_jobs(*bundled().engine, jobs);
    uint32_t drafted = 0, accepted = 0;
    for (size_t i = 0; i < jobs.size(); ++i) {
        ASSERT_EQ(bundled().plain[i].tokens.size(), kTokens) << "prompt " << i;
        EXPECT_EQ(bundled().plain[i].stats.draft_n, 0u);
        EXPECT_EQ(answers[i].tokens, bundled().plain[i].tokens) << "prompt " << i;
        EXPECT_EQ(answers[i].stop, StopReason::length);
        drafted += answers[i].stats.draft_n;
        accepted += answers[i].stats.draft_n_accepted;
    }
    // The comparison means something only while there are drafts of both fates.
    EXPECT_GT(accepted, drafted / 10);
    EXPECT_LT(accepted, drafted);
    RecordProperty("acceptance_percent", static_cast<int>(100 * accepted / std::max(drafted, 1u)));
}

INSTANTIATE_TEST_SUITE_P(draft_len, BundledGreedy, ::testing::Range(1u, 9u));

TEST(BundledGreedyAlone, text_does_not_depend_on_the_batch) {
    ASSERT_TRUE(bundled().engine);
    for (size_t i : {size_t{0}, size_t{7}, bundled().prompts.size() - 2})
        for (uint32_t draft_len : {0u, 3u}) {
            const Answer alone =
                run_job(*bundled().engine, {.prompt = bundled().prompts[i], .max_tokens = 100, .draft_len = draft_len});
            std::vector<uint32_t> start = bundled().plain[i].tokens;
            start.resize(100);
            EXPECT_EQ(alone.tokens, start) << "prompt " << i << ", draft_len " << draft_len;
        }
}

// Rounded keys and values are the same whoever wrote them: by drafts that were verified, or one by one.
TEST(BundledGreedyQ8, speculative_text_is_plain_text) {
    EngineDesc desc = bundled_pair(3, 200);
    desc.cache_dtype = DType::q8_0;
    auto engine = make_engine(desc);
    ASSERT_TRUE(engine);
    const auto prompts = bundled_prompts(*engine);
    std::vector<std::vector<Job>> jobs(3); // by draft_len 0, 1, 4
    for (size_t i : {size_t{0}, size_t{5}, size_t{13}})
        for (size_t k = 0; k < 3; ++k) jobs[k].push_back({.prompt = prompts[i], .max_tokens = 60, .draft_len = k == 0 ? 0u : k == 1 ? 1u : 4u});
    const auto plain = run_jobs(*engine, jobs[0]);
    uint32_t drafted = 0, accepted = 0;
    for (size_t k : {size_t{1}, size_t{2}}) {
        const auto answers = run_jobs(*engine, jobs[k]);
        for (size_t i = 0; i < answers.size(); ++i) {
            ASSERT_EQ(plain[i].tokens.size(), 60u);
            EXPECT_EQ(answers[i].tokens, plain[i].tokens) << "prompt " << i << ", draft_len " << jobs[k][i].draft_len;
            drafted += answers[i].stats.draft_n;
            accepted += answers[i].stats.draft_n_accepted;
        }
    }
    EXPECT_GT(accepted, drafted / 10);
    EXPECT_LT(accepted, drafted);
}

} // namespace
} // namespace auspex::greedy_test
