// Draft passes that round x to 8 bits, as GPUs with packed products take them: other drafts, the same texts.
#include "session/completions.h"
#include "session/self_draft.h"
#include "test_shaders.h"

namespace auspex::int8_drafts_test {
namespace {

using namespace test;
using namespace test::self_drafts;

// Through the kernels of a GPU, which the CPU's driver runs as well.
EngineDesc rounding(EngineDesc desc, bool rounds = true) {
    desc.adjust_tuning = [rounds](Tuning& tuning) {
        tuning.wide = false;
        tuning.int8_drafts = rounds;
    };
    return desc;
}
bool rounds_here(Engine& engine) { return engine.device().caps.integer_dots && engine.tuning().subgroup; }

// Texts are those of plain decoding; returns what drafts of this copy were worth.
Sum expect_plain_texts(Engine& engine, uint32_t n_jobs, const std::string& which) {
    Sum sum;
    for (const float temperature : {0.0f, 1.0f}) {
        const auto plain = run_jobs(engine, jobs_of(n_jobs, 0, temperature)), drafted = run_jobs(engine, jobs_of(n_jobs, 4, temperature));
        for (size_t i = 0; i < plain.size(); ++i) {
            EXPECT_EQ(drafted[i].tokens, plain[i].tokens) << which << ", temperature " << temperature << ", job " << i;
            sum.add(drafted[i].stats);
        }
    }
    return sum;
}

TEST(Int8Drafts, greedy_and_coupled_texts_are_plain) {
    for (const SelfDraft self : {SelfDraft::q4_k, SelfDraft::q8_0}) {
        auto engine = make_engine(rounding(with_copy(self, 3)));
        ASSERT_TRUE(engine);
        EXPECT_GT(expect_plain_texts(*engine, 3, kSelfDraftNames[static_cast<size_t>(self)]).accepted, 60u);
    }
}

TEST(Int8Drafts, are_nearly_as_good_as_those_of_x_as_it_is) {
    auto engine = make_engine(rounding(with_copy(SelfDraft::q4_0, 3))), whole = make_engine(rounding(with_copy(SelfDraft::q4_0, 3), false));
    ASSERT_TRUE(engine && whole);
    const Sum found = expect_plain_texts(*engine, 5, "8 bits"), expected = expect_plain_texts(*whole, 5, "whole");
    EXPECT_GT(expected.drafted, 200u);
    EXPECT_GT(10 * found.accepted * expected.drafted, 9 * expected.accepted * found.drafted);
}

// A draft model in blocks, which has a cache of its own.
TEST(Int8Drafts, texts_of_a_pair_are_plain) {
    EngineDesc desc = with_copy(SelfDraft::none, 2);
    desc.draft_synthetic = desc.target_synthetic;
    desc.draft_type = DType::q4_0;
    auto engine = make_engine(rounding(desc));
    ASSERT_TRUE(engine);
    for (const float temperature : {0.0f, 1.0f}) {
        const auto plain = run_jobs(*engine, jobs_of(4, 0, temperature)), drafted = run_jobs(*engine, jobs_of(4, 3, temperature, DrafterChoice::model));
        uint64_t accepted = 0;
        for (size_t i = 0; i < plain.size(); ++i) {
            EXPECT_EQ(drafted[i].tokens, plain[i].tokens) << "temperature " << temperature << ", job " << i;
            accepted += drafted[i].stats.draft_n_accepted;
        }
        EXPECT_GT(accepted, 20u);
    }
}

// By rejection a seed's text follows from its drafts, so they must be the same in any company: here of eight, whose rounded x shared
// memory cannot hold at once.
TEST(Int8Drafts, texts_by_rejection_are_the_same_in_company) {
    EngineDesc desc = rounding(with_copy(SelfDraft::q4_0, 8));
    desc.adjust_tuning = [then = desc.adjust_tuning](Tuning& tuning) {
        then(tuning);
        tuning.matvec_teams = 256 / tuning.lanes;
        tuning.matvec_many_outs = 16;
        tuning.matvec_sums = 8 * 16; // 8 rows with 16 outputs
    };
    auto engine = make_engine(desc);
    ASSERT_TRUE(engine);
    std::vector<Job> jobs = jobs_of(8, 4, 1);
    for (Job& job : jobs) job.acceptance = AcceptanceRule::rejection;
    const auto in_company = run_jobs(*engine, jobs);
    uint64_t accepted = 0;
    for (size_t i = 0; i < jobs.size(); ++i) {
        EXPECT_EQ(run_job(*engine, jobs[i]).tokens, in_company[i].tokens) << "job " << i;
        accepted += in_company[i].stats.draft_n_accepted;
    }
    EXPECT_GT(accepted, 100u);
}

// A copy in equal blocks says what the target says: its x is not rounded.
TEST(Int8Drafts, equal_weights_are_always_accepted) {
    EngineDesc desc = with_copy(SelfDraft::as_is, 2);
    desc.target_type = DType::q4_0;
    auto engine = make_engine(rounding(desc));
    ASSERT_TRUE(engine);
    for (const float temperature : {0.0f, 1.0f})
        for (const Answer& answer : run_jobs(*engine, jobs_of(4, 4, temperature))) {
            EXPECT_GT(answer.stats.draft_n, 10u);
            EXPECT_EQ(answer.stats.draft_n_accepted, answer.stats.draft_n);
        }
}

// Whatever such a kernel says, texts are the target's: it is nowhere but in drafts.
TEST(Int8Drafts, a_broken_kernel_spoils_drafts_and_no_text) {
    auto engine = make_engine(rounding(with_copy(SelfDraft::q4_0))), broken = make_engine(rounding(with_copy(SelfDraft::q4_0)));
    ASSERT_TRUE(engine && broken);
    const auto spirv = test_shader("gate_up.quant.int8.subgroup.fault1");
    ASSERT_FALSE(spirv.empty());
    broken->kernels().replace("gate_up.quant.int8.subgroup", spirv);
    const auto expected = run_jobs(*engine, jobs_of(4, 4, 0)), found = run_jobs(*broken, jobs_of(4, 4, 0));
    Sum right, wrong;
    for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(found[i].tokens, expected[i].tokens) << "job " << i;
        right.add(expected[i].stats);
        wrong.add(found[i].stats);
    }
    if (rounds_here(*engine)) { EXPECT_LT(wrong.accepted * right.drafted, right.accepted * wrong.drafted); }
}

// What is measured of a draft's pass is the pass that drafts, which has its kernels already.
TEST(Int8Drafts, their_passes_are_measured_as_they_are) {
    std::vector<size_t> n_new;
    for (const bool rounds : {false, true}) {
        auto engine = make_engine(rounding(with_copy(SelfDraft::q4_0), rounds));
        ASSERT_TRUE(engine);
        run_jobs(*engine, jobs_of(1, 4, 0));
        ASSERT_TRUE(drain(*engine).ok());
        const size_t before = engine->kernels().n_kernels();
        const auto times = engine->measure_pass({.of = ModelRole::draft, .repetitions = 1});
        ASSERT_TRUE(times.ok()) << times.status().message();
        n_new.push_back(engine->kernels().n_kernels() - before);
    }
    EXPECT_EQ(n_new[0], n_new[1]);
}

// Rejection, whose q is what the rounded pass says. As many texts as show a q of the wrong weights (self_draft_test.cpp).
TEST(Int8Drafts, completions_have_the_targets_distribution) {
    constexpr uint64_t kTexts = 8000;
    auto engine = make_engine(rounding(tiny_with_copy()));
    ASSERT_TRUE(engine);
    Completions found;
    const reference::Fit fit = fit_of(*engine, kTexts, found);
    ASSERT_FALSE(HasFatalFailure());
    EXPECT_GT(fit.p_value, 1e-6) << "chi-square " << fit.statistic << " in " << fit.bins << " bins " << fit.note;
    EXPECT_GT(found.drafted, kTexts);
    EXPECT_LT(found.accepted, found.drafted);
}

} // namespace
} // namespace auspex::int8_drafts_test
