// The rules of draft_len auto, one by one and without a simulator: which round is best, what a text may lose, and which drafts rest.
#include "session/speculation/account.h"
#include "session/speculation/best_shape.h"
#include "session/speculation/policy.h"
#include "session/speculation/probation.h"
#include "session/speculation/prospects.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>

namespace auspex::policy_rules_test {
namespace {

Candidate round_of(bool model, uint32_t draft_len, double tokens, double ms = 1) {
    return {.model = model, .draft_len = draft_len, .shape = {.model = model, .draft_len = draft_len}, .n_drafting = draft_len > 0 ? 1u : 0u, .tokens = tokens, .ms = ms};
}

bool any_can_start(const Candidate&) { return true; }

// rates: of rounds by the model, by draft_len; others promise nothing.
BestShape::Found find(const BestShape& best, const std::map<uint32_t, double>& rates, const BestShape::CanStart& can_start = any_can_start) {
    return best.find(round_of(false, 0, 1), 8, [&](bool model, uint32_t draft_len) {
        const auto rate = rates.find(draft_len);
        return round_of(model, draft_len, model && rate != rates.end() ? rate->second : 0.5);
    }, can_start);
}

TEST(BestShape, DraftsMustPromiseThreePercentToBeginAndNothingMoreToGoOn) {
    BestShape best;
    for (int i = 0; i < 2; ++i) best.begin(round_of(true, 2, 1), true); // recorded; probes say nothing of what is best
    EXPECT_EQ(find(best, {{2, 1.025}}).best.draft_len, 0u);
    EXPECT_EQ(find(best, {{2, 1.035}}).best.draft_len, 2u);
    best.begin(round_of(true, 2, 1), false);
    EXPECT_EQ(find(best, {{2, 1.001}}).best.draft_len, 2u);
    EXPECT_EQ(find(best, {{2, 0.97}}).best.draft_len, 0u);
    best.begin(round_of(false, 0, 1), false);
    EXPECT_EQ(find(best, {{2, 1.025}}).best.draft_len, 0u) << "once it has ended it begins anew";
}

TEST(BestShape, AnotherRoundMustPromiseTwoPercentMore) {
    BestShape best;
    for (const uint32_t draft_len : {4u, 2u}) best.begin(round_of(true, draft_len, 1), false);
    EXPECT_EQ(find(best, {{2, 1.50}, {4, 1.52}}).best.draft_len, 2u);
    EXPECT_EQ(find(best, {{2, 1.50}, {4, 1.54}}).best.draft_len, 4u);
    EXPECT_EQ(find(best, {{2, 1.50}, {3, 1.54}}).best.draft_len, 2u) << "one that never ran must promise another 2 %";
    EXPECT_EQ(find(best, {{2, 1.50}, {3, 1.57}}).best.draft_len, 3u);
}

TEST(BestShape, TheBestThatCanStartIsTakenAndTheBetterOneWaits) {
    const BestShape best;
    const auto up_to_two = [](const Candidate& candidate) { return candidate.draft_len <= 2; };
    const BestShape::Found found = find(best, {{1, 1.2}, {2, 1.4}, {5, 1.9}}, up_to_two);
    EXPECT_EQ(found.best.draft_len, 2u);
    EXPECT_TRUE(found.waits);
    EXPECT_FALSE(find(best, {{1, 1.2}, {2, 1.4}, {5, 1.1}}, up_to_two).waits) << "what is no better is not waited for";
}

TEST(BestShape, ARateCountsWhatACatchUpTakes) {
    Candidate candidate = round_of(true, 2, 3, 2);
    EXPECT_EQ(candidate.rate(), 1.5);
    candidate.catch_up_ms = 1;
    EXPECT_EQ(candidate.rate(), 1.0);
}

TEST(BestShape, AShapeIsRecordedOnceBothRoundsInFlightHaveIt) {
    BestShape best;
    const RoundShape shape = {.model = true, .draft_len = 3};
    EXPECT_TRUE(best.is_recorded({}));
    for (const bool is_recorded : {false, false, true}) {
        EXPECT_EQ(best.is_recorded(shape), is_recorded);
        best.begin(round_of(true, 3, 1), false);
    }
    EXPECT_FALSE(best.is_recorded({.model = true, .draft_len = 3, .batch = 2}));
}

// Rounds between two references, which are two plain rounds each.
uint32_t rounds_between(double speedup) {
    PlainReference reference;
    reference.expect(speedup);
    uint32_t n = 0;
    for (; !reference.is_due(); ++n) reference.begin({.draft_len = 1});
    reference.begin({});
    EXPECT_TRUE(reference.is_due()) << "one is not enough";
    reference.begin({});
    EXPECT_FALSE(reference.is_due());
    return n;
}

TEST(PlainReference, TwoPlainRoundsAmong64OrMoreTheBetterDraftsAre) {
    EXPECT_EQ(rounds_between(0.5), 65u);
    EXPECT_EQ(rounds_between(1), 65u);
    EXPECT_EQ(rounds_between(2), 129u);
}

TEST(PlainReference, APlainRoundIsFollowedByAnother) {
    PlainReference reference;
    for (int i = 0; i < 10; ++i) reference.begin({.draft_len = 1});
    EXPECT_FALSE(reference.is_due());
    reference.begin({});
    EXPECT_TRUE(reference.is_due()) << "one alone tells little";
}

TEST(Account, ATextEarnsAShareOfItsTokensAndNoMoreThanTen) {
    Account account;
    account.earn(100);
    EXPECT_NEAR(account.tokens(), 1.15, 1e-12);
    account.earn(100);
    EXPECT_NEAR(account.tokens(), 1.15, 1e-12) << "a token earns once";
    account.earn(200);
    EXPECT_NEAR(account.tokens(), 2.3, 1e-12);
    account.earn(1e6);
    EXPECT_EQ(account.tokens(), 10);
    account.open(12);
    account.earn(2e6);
    EXPECT_EQ(account.tokens(), 12) << "earning takes nothing away";
}

// Whatever the rounds promise: a text of n tokens whose drafts are never accepted pays no more than it earned.
TEST(Account, NoTextLosesMoreThanItsAccount) {
    for (const double cost : {0.01, 0.3, 0.9, 4.0}) {
        Account account;
        double paid = 0;
        for (int token = 1; token <= 2000; ++token) {
            account.earn(token);
            const Account::Cost round = {.round = cost, .recording = token < 100 ? 0.5 : 0.0};
            if (!account.affords(round, false)) continue;
            const double before = account.tokens();
            account.pay(round);
            paid += before - account.tokens();
            account.credit(0);
        }
        EXPECT_LE(paid, 0.0115 * 2000 + 1e-9) << cost;
        if (cost < 1) { EXPECT_GE(paid, std::min(0.0115, cost) * 2000 - 2) << cost << ": what is there is used"; }
    }
}

TEST(Account, AcceptedDraftsAreCreditedUpToTenOrThreeRounds) {
    Account account;
    account.open(1);
    account.pay({.round = 0.5});
    account.credit(3);
    EXPECT_EQ(account.tokens(), 3.5);
    for (int i = 0; i < 9; ++i) account.credit(3);
    EXPECT_EQ(account.tokens(), 10);
    account.pay({.round = 5});
    for (int i = 0; i < 9; ++i) account.credit(8);
    EXPECT_EQ(account.tokens(), 15) << "two rounds are charged before the first is read";
}

TEST(Account, ARecordingTakesHalfOfWhatIsLeftAtMost) {
    Account account;
    account.open(2);
    EXPECT_TRUE(account.affords({.round = 1, .recording = 100}, false));
    EXPECT_FALSE(account.affords({.round = 1.1, .recording = 100}, false));
    account.pay({.round = 0.5, .recording = 100});
    EXPECT_EQ(account.tokens(), 0.5);
    EXPECT_FALSE(account.affords({.round = 0.3, .catch_up = 0.3}, false)) << "a catch-up is paid whole";
    account.open(-1);
    account.pay({.recording = 1});
    EXPECT_EQ(account.tokens(), -1) << "a recording pays nothing back";
}

TEST(Account, WhatASearchWouldHaveWonPaysForProposalsAlone) {
    Account account;
    const Account::Cost cost = {.round = 0.8};
    for (int i = 0; i < 2; ++i) account.watch(Foretold::right, 0.4);
    EXPECT_TRUE(account.affords(cost, true));
    EXPECT_FALSE(account.affords(cost, false));
    account.watch(Foretold::nothing, 0.4);
    EXPECT_TRUE(account.affords(cost, true));
    account.watch(Foretold::wrong, 0.4);
    EXPECT_FALSE(account.affords(cost, true));
    for (int i = 0; i < 50; ++i) account.watch(Foretold::right, 0.4);
    EXPECT_FALSE(account.affords({.round = 1.6}, true)) << "1.5 tokens at most";
    account.proposals_failed();
    EXPECT_FALSE(account.affords(cost, true));
    account.watch(Foretold::right, -1);
    EXPECT_TRUE(account.affords({}, true)) << "what wins nothing costs nothing";
}

TEST(Account, ACatchUpIsFreeOfTrustedDraftsAndOfThoseThatHadToWait) {
    EXPECT_EQ(catch_up_charge(5, false, false, 1000), 5);
    EXPECT_EQ(catch_up_charge(5, true, false, 10), 0);
    EXPECT_EQ(catch_up_charge(5, false, true, 1000), 0);
    EXPECT_EQ(catch_up_charge(5, false, true, 100), 5) << "3 % of the tokens to come, at most";
    EXPECT_EQ(catch_up_charge(11, false, true, 100000), 11) << "and no more than an account holds";
    EXPECT_EQ(catch_up_share(10, 1000, 4), 4 / 64.0);
    EXPECT_EQ(catch_up_share(200, 1000, 4), 4 / 200.0);
    EXPECT_EQ(catch_up_share(200, 8, 4), 0.5) << "the text ends before";
    EXPECT_EQ(catch_up_share(200, 1, 4), 1) << "no more than the whole";
}

// Rounds of the pause that begins now.
uint32_t pause_of(Probation& probation) {
    probation.rests(DraftClass::model, true);
    uint32_t n = 0;
    for (; !probation.allows(DraftClass::model, true); ++n) probation.rests(DraftClass::model, false);
    return n;
}

TEST(Probation, APauseIsTwiceAsLongEveryTime) {
    Probation probation;
    for (const uint32_t expected : {8u, 16u, 32u, 64u, 128u, 256u, 256u}) {
        EXPECT_TRUE(probation.allows(DraftClass::model, true));
        EXPECT_TRUE(probation.drafts(DraftClass::model, true)) << "a probe begins";
        EXPECT_TRUE(probation.allows(DraftClass::model, true));
        EXPECT_FALSE(probation.drafts(DraftClass::model, true)) << "and goes on";
        EXPECT_FALSE(probation.allows(DraftClass::model, true)) << "and ends after two rounds";
        EXPECT_EQ(pause_of(probation), expected);
    }
    EXPECT_TRUE(probation.allows(DraftClass::match_8, false)) << "other classes do not rest";
}

TEST(Probation, WhatNeverRanHasNoPause) {
    Probation probation;
    EXPECT_EQ(pause_of(probation), 0u);
    EXPECT_TRUE(probation.allows(DraftClass::model, false));
}

TEST(Probation, AProbeGoesOnWhileDraftsAreAccepted) {
    Probation probation;
    probation.drafts(DraftClass::model, false);
    probation.rests(DraftClass::model, true);
    while (!probation.allows(DraftClass::model, true)) probation.rests(DraftClass::model, false);
    for (int round = 0; round < 40; ++round) {
        ASSERT_TRUE(probation.allows(DraftClass::model, true)) << round;
        probation.drafts(DraftClass::model, true);
        probation.accepted(DraftClass::model);
    }
    EXPECT_TRUE(probation.is_probing(DraftClass::model));
    probation.drafts(DraftClass::model, true);
    EXPECT_FALSE(probation.is_probing(DraftClass::model)) << "none was accepted";
    EXPECT_FALSE(probation.allows(DraftClass::model, true));
    EXPECT_EQ(pause_of(probation), 16u) << "a probe alone makes no good run";
}

TEST(Probation, DraftsAcceptedLateEndTheirPause) {
    Probation probation;
    probation.drafts(DraftClass::model, false);
    probation.accepted(DraftClass::model);
    EXPECT_FALSE(probation.is_probing(DraftClass::model)) << "what never paused is not probed";
    probation.rests(DraftClass::model, true);
    EXPECT_FALSE(probation.allows(DraftClass::model, false));
    probation.accepted(DraftClass::model); // in a round that was under way
    EXPECT_TRUE(probation.allows(DraftClass::model, false));
    probation.drafts(DraftClass::model, false);
    EXPECT_TRUE(probation.allows(DraftClass::model, false)) << "they win";
}

TEST(Probation, AfterAGoodRunEarlierFailuresAreForgotten) {
    for (const int n_rounds : {31, 32}) {
        Probation probation;
        for (int i = 0; i < 2; ++i) {
            probation.drafts(DraftClass::model, false);
            pause_of(probation);
        }
        for (int i = 0; i < n_rounds; ++i) probation.drafts(DraftClass::model, false);
        EXPECT_EQ(pause_of(probation), n_rounds == 32 ? 8u : 32u);
    }
}

// About the bundled pair on an H100: passes of so many rows over one of one row.
CostModel costs_of_small_pair(double v32) {
    CostModel costs({.target_bytes = 40'000'000, .draft_bytes = 8'000'000, .target_stages = 45, .draft_stages = 14});
    for (int i = 0; i < 40; ++i)
        for (const auto& [rows, v] : std::map<uint32_t, double>{{1, 1}, {2, 1.045}, {4, 1.22}, {8, 1.57}, {16, 2.25}, {32, v32}, {64, 2 * v32}})
            for (const uint32_t draft_len : {0u, 1u})
                if (rows > draft_len) costs.observe({.proposals = draft_len > 0, .draft_len = draft_len, .batch = rows / (1 + draft_len)}, {.draft_ms = 0.001 * draft_len, .verify_ms = 0.157 * v, .accept_ms = 0.01, .wall_ms = 0.17 * v});
    return costs;
}

TEST(Policy, NobodySearchesWhereTheBatchFillsTheDevice) {
    const auto searches = [](SpeculationPolicy& policy, uint32_t n, bool with_fixed, const LongRun& long_run) {
        std::vector<SequenceSpeculation> states(n, SequenceSpeculation(long_run));
        std::vector<SpeculatingSequence> group;
        for (SequenceSpeculation& state : states) group.push_back({.state = &state, .is_searched = true});
        if (with_fixed) group.front().is_fixed = true, group.front().fixed_draft_len = 2;
        return policy.decide(group, std::bit_ceil(n), false, [](bool, uint32_t) { return true; }).searches;
    };
    LongRun long_run;
    const CostModel costs = costs_of_small_pair(4.8);
    SpeculationPolicy policy(costs, long_run, 4);
    for (const uint32_t n : {1u, 2u, 4u, 8u}) EXPECT_TRUE(searches(policy, n, false, long_run)) << n; // v(16) / v(8) is 1.43
    EXPECT_FALSE(searches(policy, 16, false, long_run)) << "twice the rows take more than twice as long";
    EXPECT_TRUE(searches(policy, 16, true, long_run)) << "a fixed draft_len keeps its drafts, whoever is beside it";
    EXPECT_TRUE(searches(policy, 1, false, long_run)) << "alone it costs nothing";
    EXPECT_FALSE(searches(policy, 16, false, long_run));
    const CostModel untaught({.target_bytes = 40'000'000, .target_stages = 45});
    SpeculationPolicy knows_nothing(untaught, long_run, 4);
    EXPECT_TRUE(searches(knows_nothing, 16, false, long_run));
}

// Between what it takes to begin and what it takes to go on, it stays as it is.
TEST(Policy, NoiseDoesNotBeginAndEndSearches) {
    LongRun long_run;
    SequenceSpeculation state(long_run);
    const std::vector<SpeculatingSequence> group(16, SpeculatingSequence{.state = &state, .is_searched = true});
    const Candidate plain = {.shape = {.batch = 16}, .tokens = 16};
    const auto could = [&](double v32, bool is_searched) { return proposals_could_win(group, plain, 1, costs_of_small_pair(v32), is_searched); };
    uint32_t n_kept = 0;
    for (double v32 = 4; v32 < 5; v32 += 0.02) {
        EXPECT_LE(could(v32, false), could(v32, true)) << v32;
        n_kept += could(v32, true) && !could(v32, false);
    }
    EXPECT_GE(n_kept, 3u);
    EXPECT_TRUE(could(4, false));
    EXPECT_FALSE(could(5, true));
}

// Rule 8. Drafts of the model begin when eight plans in a row promised them; alone at once. They end with the first plan that does not.
TEST(Policy, InCompanyDraftsOfTheModelArePromisedEightPlansLong) {
    CostModel costs = costs_of_small_pair(4.5);
    for (int i = 0; i < 40; ++i)
        for (const uint32_t batch : {1u, 2u}) costs.observe({.model = true, .draft_len = 1, .batch = batch}, {.draft_ms = 0.02, .verify_ms = 0.17, .accept_ms = 0.01, .wall_ms = 0.21});
    for (const uint32_t n : {1u, 2u}) {
        LongRun long_run;
        for (int i = 0; i < 60; ++i) long_run.observe(DraftClass::model, 4, 4);
        SpeculationPolicy policy(costs, long_run, 4);
        std::vector<SequenceSpeculation> states(n, SequenceSpeculation(long_run));
        const auto plan = [&](bool may_draft) {
            std::vector<SpeculatingSequence> group;
            for (SequenceSpeculation& state : states) group.push_back({.state = &state, .may_use_model = may_draft});
            const RoundPlan planned = policy.decide(group, n, false, [](bool, uint32_t) { return true; });
            EXPECT_FALSE(n > 1 && planned.is_probe);
            for (size_t i = 0; i < n; ++i) policy.observe(states[i], group[i].choice, group[i].choice.draft_len, group[i].choice.draft_len);
            return planned.shape.draft_len > 0;
        };
        for (const int text : {1, 2}) {
            uint32_t n_plain = 0;
            while (n_plain < 20 && !plan(true)) n_plain += 1;
            const uint32_t n_reference = n == 1 && text == 1 ? 0 : 1; // a plain round is followed by another
            EXPECT_EQ(n_plain, n_reference + (n == 1 ? 0u : 7u)) << n << " at once, " << text;
            EXPECT_TRUE(plan(true));
            EXPECT_FALSE(plan(false)) << "who could draft has gone";
        }
    }
}

// What a probe would tell one is paid by all.
TEST(Policy, InCompanyNothingIsProbed) {
    const CostModel costs = costs_of_small_pair(4.5);
    for (const uint32_t n : {1u, 2u}) {
        LongRun long_run;
        for (int i = 0; i < 60; ++i) long_run.observe(DraftClass::model, 4, 0); // a draft model that is always wrong
        SpeculationPolicy policy(costs, long_run, 4);
        std::vector<SequenceSpeculation> states(n, SequenceSpeculation(long_run));
        uint32_t n_probes = 0;
        for (int i = 0; i < 3000; ++i) {
            std::vector<SpeculatingSequence> group;
            for (SequenceSpeculation& state : states) group.push_back({.state = &state, .may_use_model = true});
            n_probes += policy.decide(group, n, false, [](bool, uint32_t) { return true; }).is_probe;
            for (size_t at = 0; at < n; ++at) policy.observe(states[at], group[at].choice, group[at].choice.draft_len, 0);
        }
        EXPECT_EQ(n_probes > 0, n == 1) << n_probes << " probes of " << n;
    }
}

} // namespace
} // namespace auspex::policy_rules_test
