// Speculative sampling has exactly the target's distribution, and accepts exactly as often as it should.
#include "accept/round_rig.h"

namespace auspex {
namespace {

class Losslessness : public RoundTest {
  protected:
    void expect_exact(uint32_t draft_len, const std::vector<ModelCase>& cases, uint64_t draws) {
        const std::vector<Tally> tallies = play(kernels(), cases, draft_len, draws, 100 + draft_len);
        const Verdict verdict = judge(tallies, cases, draft_len);
        EXPECT_GT(verdict.pairs, kAlpha) << verdict.worst;
        EXPECT_GT(verdict.accepted_len, kAlpha) << "accepted lengths";
        RecordProperty("p_pairs", std::to_string(verdict.pairs));
        RecordProperty("p_accepted_len", std::to_string(verdict.accepted_len));
    }
};

TEST_F(Losslessness, chain_of_1) { expect_exact(1, model_cases(), 20000); }
TEST_F(Losslessness, chain_of_4) { expect_exact(4, model_cases(), 20000); }

} // namespace
} // namespace auspex
