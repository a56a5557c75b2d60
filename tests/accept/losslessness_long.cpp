// The same check with enough trials to see a shift of 0.005 in total variation in every single case.
#include "accept/round_rig.h"

namespace auspex::losslessness_long {
namespace {

class LosslessnessLong : public RoundTest, public ::testing::WithParamInterface<uint32_t> {};

TEST_P(LosslessnessLong, the_first_two_tokens_follow_the_target) {
    const uint32_t draft_len = GetParam();
    const std::vector<ModelCase> cases = model_cases();
    const uint64_t draws = reference::samples_needed(64, 0.005, kAlpha);
    const Verdict verdict = judge(play(kernels(), cases, draft_len, draws, 200 + draft_len), cases, draft_len);
    EXPECT_GT(verdict.pairs, kAlpha) << verdict.worst;
    EXPECT_GT(verdict.all_pairs, kAlpha);
    EXPECT_GT(verdict.later, kAlpha);
    EXPECT_GT(verdict.accepted_len, kAlpha);
}

INSTANTIATE_TEST_SUITE_P(draft_len, LosslessnessLong, ::testing::Values(1u, 2u, 3u, 4u, 7u, 15u));

} // namespace
} // namespace auspex::losslessness_long
