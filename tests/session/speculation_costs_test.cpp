// What rounds cost, learnt from rounds: noise, hiccups, cold shaders and drift do not spoil it.
#include "session/speculation_beds.h"

#include <gtest/gtest.h>

#include <cmath>

namespace auspex::speculation_costs_test {
namespace {

using namespace simulated;
using simulated::Device;
using simulated::Engine;

TEST(SpeculationCosts, UnseenShapesScaleWithTheMachine) {
    const Bed bed = beds()[1];
    Engine engine(bed.prior);
    Machine(bed.device, 3).decode(engine, text_of(0.8), 300, {});
    EXPECT_NEAR(engine.costs.c(), bed.device.c, 0.15 * bed.device.c);
    for (const uint32_t rows : {2u, 3u, 5u, 7u}) EXPECT_NEAR(engine.costs.v(rows), bed.device.v(rows), 0.12 * bed.device.v(rows)) << rows;
    const RoundShape unseen = {.model = true, .draft_len = 7};
    const double before = engine.costs.round_ms(unseen);
    for (int i = 0; i < 30; ++i) {
        const double slow = 2;
        engine.costs.observe({}, {0, bed.device.target_ms * slow, bed.device.accept_ms * slow, bed.device.round_ms({}) * slow});
    }
    EXPECT_NEAR(engine.costs.round_ms(unseen) / before, 2, 0.25) << "only plain rounds were seen to be slower";
    EXPECT_NEAR(engine.costs.plain_ms(1), 2 * bed.device.round_ms({}), 0.1 * 2 * bed.device.round_ms({}));
}

TEST(SpeculationCosts, OneHiccupAndAColdShaderAreNotLearnt) {
    CostModel costs(prior_of(50, 0.2, false));
    const RoundShape drafted = {.model = true, .draft_len = 4};
    for (int i = 0; i < 10; ++i) costs.observe({}, {0, 50, 0.5, 51});
    costs.observe(drafted, {40, 415, 0.5, 460}); // 360 ms of shader compilation
    const double before = costs.round_ms(drafted), plain = costs.plain_ms(1);
    EXPECT_LT(before, 150);
    for (int i = 0; i < 10; ++i) costs.observe(drafted, {41, 55, 0.5, 97});
    costs.observe(drafted, {41, 800, 0.5, 900});
    EXPECT_NEAR(costs.round_ms(drafted), 97, 8);
    EXPECT_NEAR(costs.plain_ms(1), plain, 0.1 * plain);
    EXPECT_NEAR(costs.overhead_ms({}), 0.5, 0.2);
    costs.observe({}, {0, 500, 5, 510});
    EXPECT_NEAR(costs.plain_ms(1), plain, 0.1 * plain);
    EXPECT_NEAR(costs.round_ms(drafted), 97, 8);
    costs.observe(drafted, {NAN, INFINITY, -1, NAN});
    EXPECT_NEAR(costs.round_ms(drafted), 97, 8);
}

// Two in a row, so that they look like a change.
TEST(SpeculationCosts, ColdCatchUpsAreNotLearnt) {
    CostModel costs(prior_of(50, 0.2, false));
    for (int i = 0; i < 10; ++i) costs.observe({}, {0, 50, 0.5, 51});
    const double before = costs.catch_up_ms(16);
    for (const uint32_t n_rows : {16u, 64u}) costs.observe_catch_up(n_rows, 25 * costs.catch_up_ms(n_rows), 0);
    EXPECT_EQ(costs.catch_up_ms(16), before);
    for (int i = 0; i < 10; ++i) costs.observe_catch_up(16, 1.5 * before, 0);
    EXPECT_NEAR(costs.catch_up_ms(16), 1.5 * before, 0.1 * before);
}

// Else a few slow rounds of one draft would forbid the long drafts that are known to pay, which begin as short ones.
TEST(SpeculationCosts, FewerRowsNeverCostMore) {
    CostModel costs(prior_of(50, 0.2, false));
    for (const auto& [rows, factor] : {std::pair{2u, 1.8}, {3u, 0.7}, {5u, 1.0}, {9u, 1.3}}) costs.restore({CostModel::Part::verify, rows, factor, 0.01});
    for (uint32_t rows = 1; rows < 12; ++rows) EXPECT_LE(costs.v(rows), costs.v(rows + 1)) << rows;
    EXPECT_GE(costs.v(2), 1);
    const double five = costs.v(5), nine = costs.v(9);
    EXPECT_LT(costs.v(3), five);
    EXPECT_LT(five, nine);
}

// Plain rounds come among drafting ones: what differs from one to the other again and again is not the machine's speed.
TEST(SpeculationCosts, WrongRatiosAreCorrectedWhereShapesChange) {
    const Bed bed = beds()[1];
    const Device& device = bed.device;
    for (const double wrong : {0.6, 1.25, 1.8}) {
        Engine engine(bed.prior);
        Machine machine(device, 3);
        machine.decode(engine, text_of(0.9), 600, {.fixed = 3});
        machine.decode(engine, text_of(0.9), 10, {.fixed = 0});
        CostModel costs(bed.prior);
        for (CostModel::Learnt one : engine.costs.learnt()) {
            if (one.part == CostModel::Part::verify || one.part == CostModel::Part::draft) one.factor *= wrong;
            costs.restore(one);
        }
        const RoundShape drafted = {.model = true, .draft_len = 3};
        const auto observe = [&](const RoundShape& shape) {
            costs.observe(shape, {device.draft_ms(shape), device.target_ms * device.v(shape.rows()), device.accept_ms, device.round_ms(shape)});
        };
        for (int turn = 0; turn < 10; ++turn) {
            for (int i = 0; i < 64; ++i) observe(drafted);
            for (int i = 0; i < 2; ++i) observe({});
        }
        EXPECT_NEAR(costs.c(), device.c, 0.1 * device.c) << wrong;
        EXPECT_NEAR(costs.v(4), device.v(4), 0.1 * device.v(4)) << wrong;
    }
}

// Every way has a text of its own, one after the other: its end and the next one's beginning are no two machines.
TEST(SpeculationCosts, TextsThatGrowSlowerAreNoSlowerMachine) {
    const Device device = beds()[1].device;
    const RoundShape drafted = {.model = true, .draft_len = 2};
    constexpr double kGrowth = 0.2 / 200; // of the target's passes with each token; the draft's grow half as much
    const double draft_pass_ms = device.c * device.target_ms;
    const auto v_of = [&](CostModel costs) {
        for (int text = 0; text < 20; ++text) {
            const RoundShape shape = text % 2 == 0 ? RoundShape{} : drafted;
            for (double at = 0; at < 200; at += shape.draft_len + 1) {
                const double draft_ms = device.draft_ms(shape) * (1 + kGrowth / 2 * at), verify_ms = device.target_ms * device.v(shape.rows()) * (1 + kGrowth * at);
                costs.observe(shape, {.draft_ms = draft_ms, .verify_ms = verify_ms, .accept_ms = device.accept_ms, .wall_ms = draft_ms + verify_ms + device.accept_ms, .text_len = at});
            }
        }
        costs.set_text_len(100);
        if (costs.plain_ms(1) < device.round_ms({})) ADD_FAILURE() << "a text makes no round quicker";
        return costs.v(3);
    };
    CostPrior prior = beds()[1].prior;
    const double without = v_of(CostModel(prior));
    prior.target_text_bytes = static_cast<uint64_t>(kGrowth * device.target_ms * 10e6 / 2.5); // as the model reckons with a CPU's
    prior.draft_text_bytes = static_cast<uint64_t>(kGrowth / 2 * draft_pass_ms * 10e6 / 2.5);
    const double with = v_of(CostModel(prior)), right = device.v(3);
    EXPECT_NEAR(with, right, 0.02 * right);
    EXPECT_GT(std::abs(without - right), 0.05 * right) << "a text that tells nothing";
}

// The rows of one sequence read its keys and values together on a GPU: where those are most of what a pass reads, drafts that a full batch
// has no room for pay again (MagicDec, Chen et al. 2024). A CPU reckons with each row's arithmetic.
TEST(SpeculationCosts, LongTextsMakeRowsOfManySequencesCheapAgainOnAGpu) {
    constexpr double kGrowth = 0.2 / 1000; // of a pass of one row, with each token
    const double v16 = 2.25, v32 = 4.5;    // without text
    const auto ratio_at = [](const CostModel& costs) {
        return costs.round_ms({.proposals = true, .draft_len = 1, .batch = 16}) / costs.plain_ms(16);
    };
    for (const bool is_cpu : {false, true}) {
        CostPrior prior = {.target_bytes = 1'700'000'000, .draft_bytes = 170'000'000, .target_stages = 200, .draft_stages = 60, .is_cpu = is_cpu};
        CostModel costs(prior);
        const double unit = costs.plain_ms(1); // as it guesses, so that what it reckons for text is right
        prior.target_text_bytes = static_cast<uint64_t>(kGrowth * unit * (is_cpu ? 10e6 / 2.5 : 300e6));
        costs = CostModel(prior);
        const auto text_of = [&](double v, uint32_t batch, double len) { return kGrowth * len * (is_cpu ? v : batch); };
        for (int i = 0; i < 60; ++i) // by long texts alone
            for (const double len : {2000.0, 4000.0}) {
                costs.observe({}, {.verify_ms = unit * (1 + text_of(1, 1, len)), .accept_ms = 0.01, .wall_ms = 1, .text_len = len});
                costs.observe({.batch = 16}, {.verify_ms = unit * (v16 + text_of(v16, 16, len)), .accept_ms = 0.01, .wall_ms = 1, .text_len = len});
                const RoundShape drafted = {.proposals = true, .draft_len = 1, .batch = 16};
                costs.observe(drafted, {.draft_ms = 0.001, .verify_ms = unit * (v32 + text_of(v32, 16, len)), .accept_ms = 0.01, .wall_ms = 1, .text_len = len});
            }
        EXPECT_NEAR(costs.v(16), v16, 0.1 * v16) << is_cpu;
        EXPECT_NEAR(costs.v(32), v32, 0.1 * v32) << is_cpu;
        costs.set_text_len(0);
        const double without = ratio_at(costs);
        costs.set_text_len(8000);
        const double with = ratio_at(costs);
        if (is_cpu) {
            EXPECT_NEAR(with, without, 0.1 * without);
        } else {
            EXPECT_LT(with, 0.7 * without);
        }
    }
}

TEST(SpeculationCosts, RoundsOfTheDeadAndThoseBehindPromptsAreNotLearnt) {
    CostModel costs(prior_of(50, 0.2, false));
    for (int i = 0; i < 10; ++i) costs.observe({}, {0, 50, 0.5, 51});
    const double before = costs.plain_ms(1);
    for (int i = 0; i < 10; ++i) costs.observe({}, {.draft_ms = 0, .verify_ms = 30, .accept_ms = 0.5, .wall_ms = 31, .is_steady = false});
    EXPECT_EQ(costs.plain_ms(1), before);
    EXPECT_EQ(costs.n_rounds(), 9u) << "the first may have compiled shaders";
}

TEST(SpeculationCosts, DraftsWithTransformsHaveCostsOfTheirOwn) {
    CostModel costs(prior_of(50, 0.2, false));
    const RoundShape drafted = {.model = true, .draft_len = 4}, transformed = {.model = true, .draft_len = 4, .transforms = true};
    for (int i = 0; i < 20; ++i) costs.observe({}, {0, 50, 0.5, 51});
    for (int i = 0; i < 20; ++i) costs.observe(drafted, {41, 55, 0.5, 97});
    EXPECT_NEAR(costs.round_ms(transformed), 97, 15) << "unseen";
    for (int i = 0; i < 20; ++i) costs.observe(transformed, {60, 55, 2, 118});
    for (int i = 0; i < 4; ++i) costs.observe({}, {0, 50, 0.5, 51});
    EXPECT_NEAR(costs.round_ms(drafted), 97, 6);
    EXPECT_NEAR(costs.round_ms(transformed), 118, 6);
    EXPECT_NEAR(costs.plain_ms(1), 51, 3);
}

TEST(SpeculationCosts, PlainRoundsSayNothingOfDrafts) {
    const Bed bed = beds()[1];
    Engine before(bed.prior), engine(bed.prior);
    Machine(bed.device, 3).decode(before, text_of(0.9), 600, {});
    restart(engine, before.costs.learnt(), before.long_run);
    for (int i = 0; i < 300; ++i) engine.costs.observe({}, {0, 2 * bed.device.target_ms, 9 * bed.device.accept_ms, 3 * bed.device.round_ms({})});
    EXPECT_NEAR(engine.costs.c(), before.costs.c(), 1e-9);
    for (const uint32_t rows : {2u, 4u, 9u}) EXPECT_NEAR(engine.costs.v(rows), before.costs.v(rows), 1e-9);
}

// The search for proposals takes several times as long where a text repeats itself. That is no slower machine, and no cheaper draft.
TEST(SpeculationCosts, AShortStageThatTakesLongerTellsOfItselfAlone) {
    const Device device = beds()[1].device;
    CostModel costs(beds()[1].prior);
    const RoundShape drafted = {.model = true, .draft_len = 2};
    const double plain = device.round_ms({}), draft = device.draft_ms(drafted), verify = device.target_ms * device.v(3), accept = device.accept_ms;
    const auto rounds = [&](int n, double slowness) {
        for (int i = 0; i < n; ++i) costs.observe(drafted, {draft, verify, slowness * accept, device.round_ms(drafted) + (slowness - 1) * accept});
    };
    for (int i = 0; i < 100; ++i) costs.observe({}, {0, device.target_ms, accept, plain});
    rounds(60, 1);
    const double c = costs.c(), v = costs.v(3), plain_ms = costs.plain_ms(1), round_ms = costs.round_ms(drafted);
    for (int i = 0; i < 12; ++i) rounds(i % 3 + 1, 1 + 5 * (i % 2)); // now and so now, in twos and threes
    rounds(3, 8);
    EXPECT_NEAR(costs.c(), c, 0.03 * c);
    EXPECT_NEAR(costs.v(3), v, 0.03 * v);
    EXPECT_NEAR(costs.plain_ms(1), plain_ms, 0.05 * plain_ms);
    EXPECT_NEAR(costs.round_ms(drafted), round_ms, 0.08 * round_ms + 8 * accept);
}

TEST(SpeculationCosts, RecordingIsTheMeanOfWhatWasRecorded) {
    CostModel costs(prior_of(50, 0.2, false));
    EXPECT_EQ(costs.recording_ms(), 0) << "nothing was seen";
    costs.observe({}, {0, 450, 0.5, 451, 30});
    for (int i = 0; i < 50; ++i) costs.observe({}, {0, 50, 0.5, 51});
    EXPECT_EQ(costs.recording_ms(), 30) << "rounds whose recording was there say nothing";
    costs.observe({.model = true, .draft_len = 1}, {11, 1000, 0.5, 1012, 50});
    costs.observe_catch_up(8, 9, 25);
    EXPECT_EQ(costs.recording_ms(), 35);
}

TEST(SpeculationCosts, FollowsASlowDrift) {
    CostModel costs(prior_of(50, 0.2, false));
    double slow = 1;
    for (int i = 0; i < 250; ++i) {
        if (i >= 100) slow *= 1.01;
        costs.observe({}, {0, 50 * slow, 0.5 * slow, 51 * slow});
        if (i >= 10) { EXPECT_NEAR(costs.plain_ms(1), 51 * slow, 0.1 * 51 * slow) << i; }
    }
}

} // namespace
} // namespace auspex::speculation_costs_test
