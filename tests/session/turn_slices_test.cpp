// How turns are cut, by numbers; that cuts change no bit, and that submissions stay within their limit, with a whole engine.
#include "session/turns/turn_forms.h"
#include "session/turns/turn_slices.h"

#include "session/engine_fixture.h"
#include "vk_injector.h"

namespace auspex::test::turn_slices_test {
namespace {

TEST(TurnSlices, what_fits_is_not_cut_and_what_does_not_is_cut_into_parts_that_fit) {
    EXPECT_EQ(slices_of(99, 60, 100, 28), 0u);
    EXPECT_EQ(slices_of(101, 60, 100, 28), 1u); // between passes
    EXPECT_EQ(slices_of(190, 150, 100, 28), 2u);
    EXPECT_EQ(slices_of(2000, 1000, 100, 28), 16u);
    EXPECT_EQ(slices_of(1e9, 1e9, 100, 28), 32u); // every layer
    EXPECT_EQ(slices_of(1, 1, 0, 28), 32u);
    EXPECT_EQ(slices_of(1e9, 1e9, kNoBudget, 28), 0u);
    for (double pass_ms = 1; pass_ms < 1e5; pass_ms *= 1.3)
        for (double limit_ms : {2.0, 16.0, 100.0}) {
            const uint32_t slices = slices_of(pass_ms, pass_ms, limit_ms, 28);
            const uint32_t layers = slices == 0 ? 28 : ceil_div(28u, slices);
            EXPECT_TRUE(layers == 1 || pass_ms / 28 * layers <= 1.2 * limit_ms) << pass_ms << " of " << limit_ms << " ms: " << layers << " layers";
        }
}

std::vector<uint32_t> submissions(const std::vector<double>& ms, double limit_ms, double left_ms = kNoBudget, bool forced = true) {
    std::vector<uint32_t> sizes;
    for (size_t at = 0; at < ms.size(); forced = false) {
        const Submission next = next_submission(std::span(ms).subspan(at), limit_ms, left_ms, forced);
        if (next.n_segments == 0) break;
        sizes.push_back(next.n_segments);
        at += next.n_segments;
        left_ms = next.is_known ? left_ms - next.ms : left_ms == kNoBudget ? left_ms : 0;
    }
    return sizes;
}
using Sizes = std::vector<uint32_t>;

TEST(TurnSlices, submissions_hold_what_fits_their_limit) {
    EXPECT_EQ(submissions({30, 30, 30, 30, 30}, 100), (Sizes{3, 2}));
    EXPECT_EQ(submissions({30, 300, 30, 30}, 100), (Sizes{1, 1, 2})); // nothing can be cut finer
    EXPECT_EQ(submissions({30, 30, 30}, kNoBudget), Sizes{3});
    EXPECT_EQ(submissions({-1, -1, 5, 5, -1}, 100), (Sizes{1, 1, 2, 1})) << "never timed: alone";
}

TEST(TurnSlices, a_budget_is_not_exceeded_but_by_what_must_go) {
    EXPECT_EQ(submissions({30, 30, 30, 30, 30}, 100, 70), Sizes{2});
    EXPECT_EQ(submissions({30, 30, 30, 30, 30}, 50, 95), (Sizes{1, 1, 1}));
    EXPECT_EQ(submissions({30, 30}, 100, 10), Sizes{1});
    EXPECT_EQ(submissions({30, 30}, 100, 10, false), Sizes{});
    EXPECT_EQ(submissions({-1, 5}, 100, 10), Sizes{1}) << "it may have taken everything";
    EXPECT_EQ(submissions({5, -1}, 100, 10), Sizes{1});
    EXPECT_EQ(submissions({-1, 5}, 100, 10, false), Sizes{});
}

TEST(TurnSlices, replays_are_predicted_from_fewer_and_more_rows) {
    ReplayPace pace;
    EXPECT_LT(pace.ms(8), 0);
    pace.observe(64, 50);
    EXPECT_EQ(pace.ms(64), 50);
    EXPECT_EQ(pace.ms(8), 50);    // at most
    EXPECT_EQ(pace.ms(512), 400); // in proportion
    pace.observe(512, 200);
    EXPECT_EQ(pace.ms(128), 100);
    EXPECT_EQ(pace.ms(480), 200);
    pace.observe(512, 100); // the first had compiled shaders
    EXPECT_EQ(pace.ms(512), 100);
    pace.observe(512, 200);
    EXPECT_EQ(pace.ms(512), 125);
}

TEST(TurnSlices, rows_come_in_few_buckets) {
    EXPECT_EQ(row_bucket(1, 512), 8u);
    EXPECT_EQ(row_bucket(64, 512), 64u);
    EXPECT_EQ(row_bucket(65, 512), 128u);
    EXPECT_EQ(row_bucket(500, 512), 512u);
    EXPECT_EQ(row_bucket(65, 72), 72u); // a device whose chunk is small
    EXPECT_EQ(row_bucket(5, 12), 8u);
}

// What was said, and in how many submissions.
struct Told {
    std::vector<Answer> answers;
    size_t n_submits = 0, n_prompt_turns = 0;
};
size_t n_submits() {
    const auto& calls = VkInjector::instance().calls();
    return static_cast<size_t>(std::count_if(calls.begin(), calls.end(), [](const char* call) { return std::strcmp(call, "QueueSubmit") == 0; }));
}
Told run_with(double max_submission_ms, const std::function<void(Tuning&)>& adjust = {}) {
    EngineDesc desc = bundled_pair(2, 256);
    desc.max_submission_ms = max_submission_ms;
    desc.max_gap_ms = 0; // chunks are as long as that lets them be
    desc.adjust_tuning = adjust;
    desc.device.hook = VkInjector::hook();
    VkInjector::instance().reset({});
    auto engine = make_engine(desc);
    if (!engine) return {};
    const size_t before = n_submits();
    const std::vector<uint32_t> prompt = random_prompt(150, engine->target().config().vocab_size, 5);
    Told run;
    set_trace(*engine, [&](const TraceEvent& event) { run.n_prompt_turns += !event.is_stage && event.drafter[0] == '\0' ? 1 : 0; });
    run.answers = run_jobs(*engine, {{.prompt = prompt, .max_tokens = 24, .draft_len = 3}, {.prompt = {prompt.begin(), prompt.begin() + 20}, .max_tokens = 24},
                                     {.prompt = prompt, .max_tokens = 24, .draft_len = 5, .temperature = 1}});
    run.n_submits = n_submits() - before;
    return run;
}

TEST(TurnSlices, cuts_change_no_bit_and_a_limit_makes_submissions) {
    const Told whole = run_with(kNoBudget);
    ASSERT_EQ(whole.answers.size(), 3u);
    size_t last = whole.n_submits;
    for (double limit_ms : {1.0, 1e-6}) {
        const Told cut = run_with(limit_ms);
        ASSERT_EQ(cut.answers.size(), 3u);
        for (size_t i = 0; i < 3; ++i) EXPECT_EQ(cut.answers[i].tokens, whole.answers[i].tokens) << limit_ms << " ms, job " << i;
        EXPECT_GT(cut.n_submits, last) << limit_ms << " ms";
        last = cut.n_submits;
    }
    EXPECT_GT(last, 5 * whole.n_submits) << "a layer each";
}

// Prompts by tiles, as on GPUs, in chunks of up to 512 rows or of as few as the limit asks for.
TEST(TurnSlices, chunks_of_prompts_change_no_bit) {
    const auto as_gpus = [](Tuning& tuning) { tuning.prompt_by_rows = false; };
    const Told whole = run_with(kNoBudget, as_gpus);
    const Told cut = run_with(1e-6, as_gpus);
    ASSERT_EQ(whole.answers.size(), 3u);
    ASSERT_EQ(cut.answers.size(), 3u);
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(cut.answers[i].tokens, whole.answers[i].tokens) << "job " << i;
    EXPECT_GT(cut.n_submits, whole.n_submits);
    EXPECT_LT(whole.n_prompt_turns, 8u) << "prompts of 150 tokens in one piece";
    EXPECT_GE(cut.n_prompt_turns, 2 * 149 / 8u);
}

TEST(TurnSlices, scores_are_the_same_in_parts) {
    std::vector<std::vector<float>> whole;
    for (double limit_ms : {kNoBudget, 1e-6}) {
        EngineDesc desc = bundled_pair(1, 64);
        desc.max_submission_ms = limit_ms;
        desc.device.hook = VkInjector::hook();
        VkInjector::instance().reset({});
        auto engine = make_engine(desc);
        ASSERT_TRUE(engine);
        const size_t before = n_submits();
        std::vector<std::vector<float>> rows;
        const Status status = engine->score(random_prompt(40, engine->target().config().vocab_size, 5),
                                            [&](uint32_t, std::span<const float> logits) { rows.emplace_back(logits.begin(), logits.end()); });
        EXPECT_TRUE(status.ok()) << status.message();
        const size_t n_chunks = ceil_div(40u, Scorer::kDefaultChunk), n_layers = engine->target().config().n_layers;
        EXPECT_EQ(n_submits() - before, limit_ms == kNoBudget ? n_chunks : n_chunks * (n_layers + 1)) << limit_ms << " ms";
        if (whole.empty()) whole = rows;
        EXPECT_EQ(whole.size(), 40u);
        EXPECT_TRUE(rows == whole) << limit_ms << " ms";
    }
}

} // namespace
} // namespace auspex::test::turn_slices_test
