// What rounds may be asked for: proposed drafts, coupled and lenient acceptance, truncated rows. Each with the
// distribution that it promises, on the rig; planted faults of all of them are in faults_test.cpp.
#include "accept/accept_fixture.h"
#include "accept/rule_checks.h"

namespace auspex::rules_test {
namespace {

class RulesTest : public RuleChecks {
  protected:
    // Enough to see a shift of 0.03 in total variation in every single case with power 0.99 at kAlpha.
    const uint64_t draws_ = reference::samples_needed(64, 0.03, kAlpha);

    static void expect_exact(const Verdict& verdict) {
        EXPECT_GT(verdict.pairs, kAlpha) << verdict.worst;
        EXPECT_GT(verdict.all_pairs, kAlpha);
        EXPECT_GT(verdict.later, kAlpha);
        EXPECT_GT(verdict.after, kAlpha);
        EXPECT_GT(verdict.accepted_len, kAlpha);
    }
    // As often as Σ min(target, draft) says, which the record's overlap estimates: 0.005 is 5 σ of 250,000 tests.
    static void expect_rates(const Verdict& verdict) {
        EXPECT_GT(verdict.tested, 250000u);
        EXPECT_LT(std::abs(verdict.accepted_error), 0.005);
        EXPECT_LT(std::abs(verdict.overlap_error), 0.005);
    }
};

// ---- proposed drafts --------------------------------------------------------------------------------------------------

using ProposedDrafts = RulesTest;

TEST_F(ProposedDrafts, good_bad_and_impossible_ones_leave_the_targets_distribution) {
    const Verdict verdict = play_proposals(kernels(), draws_);
    expect_exact(verdict);
    expect_rates(verdict);
}

// Slots of one batch do not notice whose drafts the others test: every token and record is that of a batch of their kind.
TEST_F(ProposedDrafts, do_not_disturb_the_models_in_the_same_batch) {
    EXPECT_EQ(strange_tokens(kernels()), 0u);
}

// ---- coupled acceptance -----------------------------------------------------------------------------------------------

using Coupled = RulesTest;

TEST_F(Coupled, has_the_targets_distribution) {
    const std::vector<ModelCase> all = model_cases(), cases{all[0], all[1], all[5]};
    const std::vector<Tally> tallies = play(kernels(), cases, 3, draws_, 420, kCoupled);
    const Verdict verdict = judge(tallies, cases, 3, kCoupled);
    record_properties(verdict);
    expect_exact(verdict);
    // Both argmaxes are x when E_i / E_x ≥ max(p_i / p_x, q_i / q_x) for all i: Daliri et al. 2024, section 3.
    for (size_t g = 0; g < tallies.size(); ++g) {
        const float temperature = kTemperatures[g / cases.size()];
        const reference::Vector p = table_of(cases[g % cases.size()].target, temperature)[kFirstToken],
                                q = table_of(cases[g % cases.size()].draft, temperature)[kFirstToken];
        double both = 0.0;
        for (size_t x = 0; x < p.size(); ++x) {
            if (p[x] == 0.0 || q[x] == 0.0) continue;
            double sum = 0.0;
            for (size_t i = 0; i < p.size(); ++i)
                sum += std::max(p[i] / p[x], q[i] / q[x]);
            both += 1.0 / sum;
        }
        double n = 0.0;
        for (uint64_t count : tallies[g].accepted_len)
            n += double(count);
        EXPECT_NEAR(1.0 - double(tallies[g].accepted_len[0]) / n, both, 5.0 * std::sqrt(both * (1.0 - both) / n))
            << cases[g % cases.size()].name;
    }
}

// The text depends on seed and target alone: K, drafter and what was accepted do not matter.
TEST_F(Coupled, texts_are_those_of_plain_sampling) {
    for (uint32_t draft_len = 1; draft_len <= 8; ++draft_len)
        EXPECT_EQ(other_than_plain(kernels(), mixed_cases(), draft_len, kCoupled), 0u) << "draft_len " << draft_len;
}

// The same for greedy text, where many rows have several largest logits.
TEST_F(RulesTest, greedy_texts_are_those_of_plain_decoding) {
    for (uint32_t draft_len = 1; draft_len <= 8; ++draft_len)
        EXPECT_EQ(other_than_plain(kernels(), tied_cases(), draft_len, kGreedy), 0u) << "draft_len " << draft_len;
}

// ---- drafts of fewer ids ----------------------------------------------------------------------------------------------

TEST_F(RulesTest, drafts_of_fewer_ids_leave_the_targets_distribution) {
    const Verdict verdict = play_narrow(kernels(), draws_);
    expect_exact(verdict);
    expect_rates(verdict);
}
TEST_F(RulesTest, drafts_of_fewer_ids_leave_plain_texts) {
    for (const Rules& rules : {kCoupled, kGreedy})
        for (uint32_t draft_len = 1; draft_len <= 8; draft_len += draft_len)
            EXPECT_EQ(other_than_plain(kernels(), narrow_cases(), draft_len, rules), 0u) << "draft_len " << draft_len;
}
TEST_F(RulesTest, lenient_drafts_of_fewer_ids_have_their_own_distribution) {
    expect_exact(play_and_judge(kernels(), narrow_cases(), 2, draws_, 495, {.lenience = 0.5f}));
}

// ---- lenience ---------------------------------------------------------------------------------------------------------

class Lenient : public RulesTest, public ::testing::WithParamInterface<float> {};

// Exactly the distribution that A.5 gives: no token above target / lenience, drafts accepted with Σ min(draft, target /
// lenience), and not the target's distribution.
TEST_P(Lenient, has_its_own_distribution_within_its_bound) {
    const Rules rules{.lenience = GetParam()};
    const std::vector<ModelCase> all = model_cases(), cases{all[0], all[5]};
    constexpr uint32_t kDraftLen = 2;
    const std::vector<Tally> tallies = play(kernels(), cases, kDraftLen, draws_, 440, rules);
    const Verdict verdict = judge(tallies, cases, kDraftLen, rules);
    record_properties(verdict);
    expect_exact(verdict);
    EXPECT_LT(std::abs(verdict.accepted_error), 0.005);
    EXPECT_LT(judge(tallies, cases, kDraftLen).pairs, kAlpha) << "lenient rounds look lossless";
    for (size_t g = 0; g < tallies.size(); ++g) {
        const reference::Vector p = table_of(cases[g % cases.size()].target, kTemperatures[g / cases.size()])[kFirstToken];
        const size_t vocab = p.size();
        double n = 0.0;
        for (uint64_t count : tallies[g].accepted_len)
            n += double(count);
        for (size_t t = 0; t < vocab; ++t) {
            const auto row = tallies[g].pairs.begin() + static_cast<ptrdiff_t>(t * vocab);
            const double share = double(std::accumulate(row, row + static_cast<ptrdiff_t>(vocab), uint64_t{0})) / n;
            const double bound = std::min(1.0, p[t] / double(rules.lenience));
            EXPECT_LE(share, bound + 5.0 * std::sqrt(bound * (1.0 - bound) / n)) << "token " << t;
        }
    }
}

// At 1 it is not there: every token is that of shaders which know nothing of it.
TEST_F(RulesTest, lenience_of_one_changes_no_bit) {
    const std::unique_ptr<KernelLibrary> without = new_library();
    plant(*without, "accept_test", 15);
    plant(*without, "accept_race", 14);
    const std::vector<uint32_t> rounds{4, 4, 0};
    for (const float lenience : {1.0f, 0.5f}) {
        const Rules rules{.lenience = lenience};
        const bool same = play_texts(kernels(), model_cases(), 6000, rounds, 480, rules).texts ==
                          play_texts(*without, model_cases(), 6000, rounds, 480, rules).texts;
        EXPECT_EQ(same, lenience == 1.0f);
    }
}

INSTANTIATE_TEST_SUITE_P(lenience, Lenient, ::testing::Values(0.7f, 0.2f));

// Temperature 0, A.5: t is accepted iff target(t) ≥ lenience · max target; after a rejection the argmax follows.
class GreedyLenient : public AcceptFixture {};

// Every fifth entry's rows keep two tokens: the others have no probability.
TEST_F(GreedyLenient, accepts_drafts_near_the_largest) {
    constexpr uint32_t kBatch = 400, kDraftLen = 4, kVocab = 30, kStride = 32;
    constexpr float kLenience = 0.3f;
    reference::DataStream data(5);
    AcceptInput in(kBatch, kDraftLen, kVocab, kStride);
    for (float& v : in.target)
        v = std::round(8.0f * data.normal()) / 8.0f; // ties, and no distance near log 0.3
    for (uint32_t b = 0; b < kBatch; ++b) {
        gpu::SlotState& state = in.states[kBatch - 1 - b] = neutral_state();
        state.live = 1;
        state.max_generated = state.max_context = 1000;
        state.lenience = b % 4 ? kLenience : 1.0f;
        in.round_slots[b] = {kBatch - 1 - b, kDraftLen, 3, 1, 0};
        for (uint32_t j = 0; j <= kDraftLen; ++j)
            in.target_cuts.push_back(b % 5 ? gpu::Cut{-INFINITY, ~0u} : top_cut(in.target_row(b, j), 2));
        for (uint32_t j = 0; j < kDraftLen; ++j) {
            const auto row = in.target_row(b, j);
            uint32_t& draft = in.drafts[b * kDraftLen + j] = 0;
            for (uint32_t tries = 0; tries < 12; ++tries) // a good one
                if (const uint32_t t = data.below(kVocab); row[t] > row[draft]) draft = t;
        }
    }
    const AcceptOutput out = accept(in);
    uint32_t n_lenient = 0;
    for (uint32_t b = 0; b < kBatch; ++b) {
        uint32_t expected = 0;
        auto best = [&] { return std::ranges::max_element(in.target_row(b, expected)) - in.target_row(b, expected).begin(); };
        for (; expected < kDraftLen; ++expected) {
            const uint32_t t = in.drafts[b * kDraftLen + expected];
            if (t == best()) continue;
            const auto row = in.target_row(b, expected);
            const gpu::Cut cut = in.target_cuts[b * (kDraftLen + 1) + expected];
            if (row[t] < cut.logit || (row[t] == cut.logit && t > cut.last_id)) break;
            if (b % 4 == 0 || double(row[t]) - double(row[static_cast<size_t>(best())]) < std::log(double(kLenience))) break;
            ++n_lenient;
        }
        ASSERT_EQ(out.records[b].accepted_len, expected) << "entry " << b;
        EXPECT_EQ(out.records[b].tokens[expected], best());
    }
    EXPECT_GT(n_lenient, 100u);
}

// ---- truncated rows ---------------------------------------------------------------------------------------------------

// Lossless for the truncated target; a token that a cut leaves out makes the p-value 0.
TEST_F(RulesTest, truncated_rows_leave_the_truncated_targets_distribution) {
    const Verdict verdict = play_cut(kernels(), draws_);
    expect_exact(verdict);
    expect_rates(verdict);
}
TEST_F(RulesTest, proposals_outside_the_cut_are_rejected) {
    std::vector<ModelCase> cases = proposal_cases();
    for (ModelCase& c : cases) {
        c.target_cuts = top_cuts(c.target, 3);
        c.draft_cuts = top_cuts(c.draft, 1);
    }
    expect_exact(play_and_judge(kernels(), cases, 2, draws_, 460, {.drafts = Rules::Drafts::proposed, .with_cuts = true}));
}
TEST_F(RulesTest, coupled_rows_are_truncated_alike) {
    expect_exact(play_and_judge(kernels(), cut_cases(), 2, draws_, 470, {.acceptance = gpu::kAcceptCoupled, .with_cuts = true}));
}

} // namespace
} // namespace auspex::rules_test
