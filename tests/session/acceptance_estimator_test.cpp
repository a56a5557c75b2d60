// How often drafts are accepted: an estimator that full acceptance does not bias, and equation 1 of Leviathan et al. 2023.
#include "session/speculation/acceptance_estimator.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

namespace auspex::acceptance_estimator_test {
namespace {

TEST(SpeculationEstimator, FullAcceptanceIsALowerBound) {
    std::mt19937_64 random(7);
    for (const double alpha : {0.3, 0.6, 0.85}) {
        for (const uint32_t draft_len : {1u, 2u, 4u, 8u}) {
            LongRun long_run, exact; // a prior that draws nowhere
            exact.restore(DraftClass::model, {alpha * 1e6, 1e6, 1, 1}, {});
            AcceptanceEstimator estimator(exact);
            double estimates = 0, long_estimates = 0, naive = 0; // naive: what accepted / drafted says
            constexpr int n = 20000;
            for (int round = 0; round < n; ++round) {
                uint32_t a = 0;
                while (a < draft_len && std::bernoulli_distribution(alpha)(random)) a += 1;
                estimator.observe(DraftClass::model, draft_len, a);
                long_run.observe(DraftClass::model, draft_len, a);
                estimates += estimator.alpha(DraftClass::model) / n;
                long_estimates += long_run.alpha(DraftClass::model) / n;
                naive += static_cast<double>(a) / draft_len / n;
            }
            EXPECT_NEAR(long_estimates, alpha, 0.03) << "draft_len " << draft_len;
            EXPECT_NEAR(estimates, alpha, 0.03) << "draft_len " << draft_len;
            if (draft_len >= 4) { // the naive mean must fail the same check
                EXPECT_GT(std::abs(naive - alpha), 0.05);
            }
        }
    }
}

// Texts that follow each other are alike: what the last ones accepted is most of what is expected of the next.
TEST(SpeculationEstimator, TheLastTextsWeighMost) {
    LongRun long_run;
    for (int i = 0; i < 1000; ++i) long_run.observe(DraftClass::model, 4, 4);
    EXPECT_GT(long_run.alpha(DraftClass::model), 0.98);
    for (int i = 0; i < 200; ++i) long_run.observe(DraftClass::model, 1, i % 2);
    EXPECT_LT(long_run.alpha(DraftClass::model), 0.6);
    EXPECT_TRUE(long_run.is_known(DraftClass::model));
    LongRun useless;
    for (int i = 0; i < 400; ++i) useless.observe(DraftClass::model, 4, 0);
    EXPECT_TRUE(useless.is_known(DraftClass::model));
    EXPECT_LT(useless.alpha(DraftClass::model), 0.02);
}

TEST(SpeculationEstimator, EquationOne) {
    EXPECT_DOUBLE_EQ(expected_tokens(0.8, 0), 1);
    EXPECT_NEAR(expected_tokens(0.8, 4), (1 - std::pow(0.8, 5)) / 0.2, 1e-12);
    EXPECT_DOUBLE_EQ(expected_tokens(1, 7), 8);
    EXPECT_DOUBLE_EQ(expected_tokens(0, 7), 1);
}

TEST(SpeculationEstimator, AdaptsInAFewRoundsAndKeepsClassesApart) {
    LongRun long_run;
    AcceptanceEstimator estimator(long_run);
    for (int i = 0; i < 50; ++i) estimator.observe(DraftClass::model, 4, 4);
    EXPECT_GT(estimator.alpha(DraftClass::model), 0.95);
    for (int i = 0; i < 8; ++i) estimator.observe(DraftClass::model, 4, 0);
    EXPECT_LT(estimator.alpha(DraftClass::model), 0.65);
    EXPECT_EQ(estimator.evidence(DraftClass::match_8), 0);
    for (int i = 0; i < 30; ++i) estimator.observe(DraftClass::match_8, 0, 0);
    EXPECT_LT(estimator.expected_tokens(DraftClass::match_8, 4), 1.4) << "a match that is never there gives nothing";
}

} // namespace
} // namespace auspex::acceptance_estimator_test
