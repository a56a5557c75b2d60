// Speculative sampling has exactly the target's distribution, and accepts exactly as often as it should.
#include "accept/round_rig.h"

namespace auspex::losslessness_test {
namespace {

// Sample size: enough to see a shift of 0.02 in total variation in every single case with power 0.99 at kAlpha, and
// 1,000,000 trials per draft length together; losslessness_long.cpp sees 0.005.
constexpr uint64_t kDrawsPerCase = 84000;

class Losslessness : public RoundTest, public ::testing::WithParamInterface<uint32_t> {};

TEST_P(Losslessness, the_first_two_tokens_follow_the_target) {
    const uint32_t draft_len = GetParam();
    const std::vector<ModelCase> cases = model_cases();
    ASSERT_GE(kDrawsPerCase, reference::samples_needed(64, 0.02, kAlpha));
    ASSERT_GE(kDrawsPerCase * cases.size() * kTemperatures.size(), 1000000u);
    const Verdict verdict = judge(play(kernels(), cases, draft_len, kDrawsPerCase, 100 + draft_len), cases, draft_len);
    EXPECT_GT(verdict.pairs, kAlpha) << verdict.worst;
    EXPECT_GT(verdict.all_pairs, kAlpha) << "all cases together";
    EXPECT_GT(verdict.later, kAlpha) << "tokens after the second";
    EXPECT_GT(verdict.after, kAlpha) << "tokens of the next round";
    EXPECT_GT(verdict.accepted_len, kAlpha) << "accepted lengths";
    // Drafts are accepted, and their overlap recorded, with Σ min(target, draft).
    EXPECT_GE(verdict.tested, 421000u);
    EXPECT_LT(std::abs(verdict.accepted_error), 0.005);
    EXPECT_LT(std::abs(verdict.overlap_error), 0.005);
    record_properties(verdict);
}

INSTANTIATE_TEST_SUITE_P(draft_len, Losslessness, ::testing::Values(1u, 2u, 3u, 4u));

} // namespace
} // namespace auspex::losslessness_test
