// Random tiny pairs: models that know nothing of each other (nearly everything is rejected), and a draft that is its
// target, where every draft of every round must be accepted: a hole in the draft cache costs acceptance silently.
#include "session/engine_fixture.h"
#include "session/gpu_contents.h"

namespace auspex::random_pairs_test {
namespace {

using namespace test;

EngineDesc pair(const SyntheticModel& target, const SyntheticModel& draft, uint32_t slots, uint32_t context, DType cache) {
    EngineDesc desc;
    desc.target_synthetic = target;
    desc.draft_synthetic = draft;
    desc.max_sequences = slots;
    desc.max_context = context;
    desc.cache_dtype = cache;
    return desc;
}

// Nothing was rejected, and as few rounds were needed as that allows: no round went without drafts.
void expect_all_accepted(const Answer& answer, uint32_t draft_len, const std::string& what) {
    EXPECT_EQ(answer.n_of(TokenOrigin::correction), 0u) << what;
    EXPECT_EQ(answer.stats.draft_n, answer.stats.draft_n_accepted) << what;
    EXPECT_EQ(answer.stats.rounds, (answer.tokens.size() + draft_len) / (draft_len + 1)) << what;
}

struct PairShape {
    const char* name;
    Shape target, draft;
    DType cache;
};
std::vector<PairShape> pair_shapes() {
    return {
        {"gqa2_f32", {.vocab = 97}, {.d = 40, .layers = 1, .heads = 1, .ffn = 33, .vocab = 97}, DType::f32},
        {"gqa3_hd64_bf16", {.d = 100, .heads = 3, .head_dim = 64, .ffn = 130, .vocab = 301, .tied = true, .dtype = DType::bf16},
         {.d = 33, .layers = 1, .heads = 4, .ffn = 72, .vocab = 301, .dtype = DType::f16}, DType::f16},
        {"gqa5_hd32_f16", {.d = 72, .layers = 3, .heads = 5, .ffn = 77, .vocab = 1030, .dtype = DType::f16},
         {.d = 72, .layers = 1, .heads = 2, .kv_heads = 2, .ffn = 50, .vocab = 1030, .tied = true, .dtype = DType::bf16}, DType::f16},
        {"gqa1_hd128", {.d = 33, .layers = 1, .heads = 2, .kv_heads = 2, .head_dim = 128, .ffn = 41, .vocab = 11},
         {.d = 48, .layers = 1, .heads = 4, .head_dim = 32, .ffn = 20, .vocab = 11}, DType::f16},
        {"gqa3_hd64_q8_0", {.d = 72, .heads = 3, .head_dim = 64, .ffn = 77, .vocab = 203}, {.d = 48, .layers = 1, .heads = 2, .kv_heads = 2, .ffn = 20, .vocab = 203}, DType::q8_0},
    };
}

class UnrelatedPair : public ::testing::TestWithParam<PairShape> {};

TEST_P(UnrelatedPair, greedy_text_is_plain_text) {
    const PairShape& shape = GetParam();
    auto engine = make_engine(pair(random_model(shape.target, 1), random_model(shape.draft, 2), 8, 300, shape.cache));
    ASSERT_TRUE(engine);
    std::vector<Job> plain, speculative;
    for (uint32_t draft_len = 1; draft_len <= 8; ++draft_len)
        for (uint32_t n : {1u, 2u, 5u + 7u * draft_len}) {
            Job job = {.prompt = random_prompt(n, shape.target.vocab, n + 1000 * draft_len), .max_tokens = 70};
            plain.push_back(job);
            job.draft_len = draft_len;
            speculative.push_back(job);
        }
    const auto expected = run_jobs(*engine, plain), found = run_jobs(*engine, speculative);
    uint32_t drafted = 0, accepted = 0;
    for (size_t i = 0; i < plain.size(); ++i) {
        EXPECT_EQ(found[i].tokens, expected[i].tokens) << "draft_len " << speculative[i].draft_len << ", prompt of " << plain[i].prompt.size();
        EXPECT_EQ(found[i].tokens.size(), 70u);
        drafted += found[i].stats.draft_n;
        accepted += found[i].stats.draft_n_accepted;
    }
    EXPECT_LT(accepted, drafted / 2);
}

INSTANTIATE_TEST_SUITE_P(shape, UnrelatedPair, ::testing::ValuesIn(pair_shapes()), [](const auto& at) { return at.param.name; });

struct TwinCase {
    const char* name;
    DType weights, cache;
    float temperature;
    bool prompt_by_rows;
};
class Twins : public ::testing::TestWithParam<TwinCase> {
  protected:
    std::unique_ptr<Engine> make(uint32_t slots, uint32_t context = 512) {
        const SyntheticModel model = random_model({.d = 72, .layers = 2, .heads = 3, .ffn = 100, .vocab = 203, .dtype = GetParam().weights, .scale = 0.3f}, 5, 1024);
        EngineDesc desc = pair(model, model, slots, context, GetParam().cache);
        desc.adjust_tuning = [](Tuning& tuning) { tuning.prompt_by_rows = GetParam().prompt_by_rows; };
        return make_engine(desc);
    }
};

// The lengths put the end of the draft's prompt before, on and after the edges of a replay (64 rows), and leave it one
// and two rows short.
TEST_P(Twins, every_draft_is_accepted) {
    auto engine = make(4);
    ASSERT_TRUE(engine);
    std::vector<Job> jobs;
    for (uint32_t n : {1u, 2u, 3u, 4u, 8u, 9u, 10u, 17u, 63u, 64u, 65u, 66u, 67u, 129u, 130u, 131u, 200u}) {
        const uint32_t draft_len = 1 + n % 8;
        jobs.push_back({.prompt = random_prompt(n, 203, n), .max_tokens = 200, .draft_len = draft_len, .temperature = GetParam().temperature, .seed = n});
    }
    const auto answers = run_jobs(*engine, jobs);
    for (size_t i = 0; i < jobs.size(); ++i)
        expect_all_accepted(answers[i], jobs[i].draft_len, "prompt of " + std::to_string(jobs[i].prompt.size()) + ", draft_len " + std::to_string(jobs[i].draft_len));
}

// Acceptance forgives a last bit; the caches must not: every position took the same path in both models.
TEST_P(Twins, both_caches_hold_the_same_bits) {
    auto engine = make(4);
    ASSERT_TRUE(engine);
    for (uint32_t n : {1u, 2u, 3u, 17u, 64u, 65u, 66u, 67u, 130u}) {
        auto id = engine->create_sequence({random_prompt(n, 203, n), 40, {GetParam().temperature, 2}, 4, true});
        ASSERT_TRUE(id.ok());
        drive(*engine);
        const LiveSequence& sequence = *find_sequence(*engine, id.value());
        EXPECT_GE(sequence.draft_rows + 2, sequence.target_len);
        EXPECT_EQ(first_difference(engine->target().cache().shape(), cache_rows(*engine, engine->target(), sequence.slot->number, sequence.draft_rows),
                                   cache_rows(*engine, *engine->draft(), sequence.slot->number, sequence.draft_rows)), "") << "prompt of " << n;
        ASSERT_TRUE(destroy_sequence(*engine, id.value()).ok());
    }
}

// Rounds without drafts leave the draft cache behind by any number of rows; drafting goes on as if nothing had been.
TEST_P(Twins, every_draft_is_accepted_after_plain_rounds) {
    auto engine = make(2, 700);
    ASSERT_TRUE(engine);
    for (uint32_t n : {1u, 2u, 3u, 66u}) {
        auto id = engine->create_sequence({random_prompt(n, 203, n), 600, {GetParam().temperature, 3}, 3, true});
        ASSERT_TRUE(id.ok()) << id.status().message();
        const LiveSequence* sequence = find_sequence(*engine, id.value());
        uint32_t state = n, switches = 0, draft_len = 3;
        size_t next_switch = n == 2 ? 0 : 5; // also before the first round
        drive(*engine, [&] {
            if (sequence->output.size() >= next_switch) {
                state = state * 1664525u + 1013904223u;
                draft_len = draft_len > 0 && state >> 30 != 0 ? 0 : 1 + (state >> 20) % 8;
                EXPECT_TRUE(set_draft_len(*engine, id.value(), draft_len).ok());
                // Plain stretches of 1, 2, 3 and up to 40 tokens: lags from within a round's reach to several replays.
                next_switch = sequence->output.size() + 1 + (draft_len == 0 ? (state >> 8) % ((state & 1) ? 3 : 40) : (state >> 8) % 50);
                ++switches;
            }
            return sequence->stop != StopReason::none;
        });
        ASSERT_FALSE(HasFatalFailure());
        const Answer answer = answer_of(*engine, id.value());
        EXPECT_GT(switches, 8u);
        EXPECT_EQ(answer.tokens.size(), 600u);
        EXPECT_EQ(answer.n_of(TokenOrigin::correction), 0u) << "prompt of " << n;
        EXPECT_EQ(answer.stats.draft_n, answer.stats.draft_n_accepted);
        EXPECT_GT(answer.stats.draft_n, 100u);
        EXPECT_GT(answer.n_of(TokenOrigin::plain), 10u);
        ASSERT_TRUE(destroy_sequence(*engine, id.value()).ok());
    }
}

TEST_P(Twins, every_draft_is_accepted_up_to_the_end_of_the_context) {
    auto engine = make(4, 150);
    ASSERT_TRUE(engine);
    std::vector<Job> jobs;
    for (uint32_t draft_len = 1; draft_len <= 8; ++draft_len)
        jobs.push_back({.prompt = random_prompt(20 + draft_len, 203, draft_len), .max_tokens = 0, .draft_len = draft_len, .temperature = GetParam().temperature});
    const auto answers = run_jobs(*engine, jobs);
    for (size_t i = 0; i < jobs.size(); ++i) {
        EXPECT_EQ(answers[i].stop, StopReason::context);
        EXPECT_EQ(answers[i].tokens.size() + jobs[i].prompt.size(), 150u);
        EXPECT_EQ(answers[i].n_of(TokenOrigin::correction), 0u);
        EXPECT_EQ(answers[i].stats.draft_n, answers[i].stats.draft_n_accepted);
    }
}

INSTANTIATE_TEST_SUITE_P(model, Twins,
                         ::testing::Values(TwinCase{"greedy_f32", DType::f32, DType::f32, 0.0f, false}, TwinCase{"sampled_f32", DType::f32, DType::f32, 1.0f, false},
                                           TwinCase{"greedy_bf16_f16", DType::bf16, DType::f16, 0.0f, true}, TwinCase{"sampled_f16", DType::f16, DType::f16, 1.0f, false},
                                           TwinCase{"sampled_q8_0", DType::bf16, DType::q8_0, 0.8f, true}),
                         [](const auto& at) { return at.param.name; });

} // namespace
} // namespace auspex::random_pairs_test
