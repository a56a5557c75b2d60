// Drafts by the target's own weights: every type of the copy with every cache, batch and K; rounds read at once and late; many more
// completions; and the memory of models as they are downloaded.
#include "session/self_draft.h"

namespace auspex::self_draft_long {
namespace {

using namespace test;
using namespace test::self_drafts;

struct LongCase {
    SelfDraft self;
    DType cache;
    uint32_t slots;
};
class SelfDraftLong : public ::testing::TestWithParam<LongCase> {};

TEST_P(SelfDraftLong, every_draft_len_gives_the_plain_text) {
    const LongCase& at = GetParam();
    auto engine = make_engine(with_copy(at.self, at.slots, at.cache)), alone = make_engine(with_copy(SelfDraft::none, at.slots, at.cache));
    ASSERT_TRUE(engine && alone);
    Sum sum;
    for (const float temperature : {0.0f, 1.0f}) {
        const auto plain = run_jobs(*alone, jobs_of(20, 0, temperature));
        for (uint32_t draft_len = 1; draft_len <= 8; ++draft_len)
            for (const double budget_ms : {-1.0, 0.01}) { // two rounds in flight; one segment a step, so that rounds are read late
                std::vector<uint64_t> ids;
                size_t done = 0;
                const std::vector<Job> jobs = jobs_of(20, draft_len, temperature);
                for (size_t i = 0; i < jobs.size(); ++i) {
                    ids.push_back(engine->create_sequence(jobs[i].request()).value());
                    if (ids.size() < at.slots && i + 1 < jobs.size()) continue;
                    drive(*engine, {}, budget_ms);
                    ASSERT_FALSE(HasFatalFailure());
                    for (const uint64_t id : ids) {
                        const Answer answer = answer_of(*engine, id);
                        EXPECT_EQ(answer.tokens, plain[done].tokens) << "temperature " << temperature << ", draft_len " << draft_len << ", job " << done;
                        sum.add(answer.stats);
                        done += 1;
                        EXPECT_TRUE(destroy_sequence(*engine, id).ok());
                    }
                    ids.clear();
                }
            }
    }
    EXPECT_LT(sum.accepted, sum.drafted);
}

std::vector<LongCase> all_cases() {
    std::vector<LongCase> cases;
    for (const SelfDraft self : {SelfDraft::q4_0, SelfDraft::q4_k, SelfDraft::q8_0})
        for (const DType cache : {DType::f16, DType::f32, DType::q8_0})
            for (const uint32_t slots : {1u, 8u}) cases.push_back({self, cache, slots});
    return cases;
}

std::string name_of(const ::testing::TestParamInfo<LongCase>& at) {
    return std::string(kSelfDraftNames[static_cast<size_t>(at.param.self)]) + "_" + std::string(dtype_name(at.param.cache)) + "_" + std::to_string(at.param.slots);
}

INSTANTIATE_TEST_SUITE_P(all, SelfDraftLong, ::testing::ValuesIn(all_cases()), name_of);

TEST(SelfDraftLong, many_completions_have_the_targets_distribution) { expect_the_targets_distribution(200'000); }

// Random weights, made on the device, of Llama-3.2-1B and 3B: their heads lie in several shards.
TEST(SelfDraftLong, models_as_they_are_downloaded_take_what_was_planned) {
    for (const bool is_3b : {false, true}) {
        EngineDesc desc;
        desc.target_synthetic = random_model(is_3b ? Shape{.d = 3072, .layers = 28, .heads = 24, .kv_heads = 8, .head_dim = 128, .ffn = 8192, .vocab = 128256, .tied = true, .dtype = DType::bf16}
                                                   : Shape{.d = 2048, .layers = 16, .heads = 32, .kv_heads = 8, .head_dim = 64, .ffn = 8192, .vocab = 128256, .tied = true, .dtype = DType::bf16},
                                             1, 4096);
        desc.target_synthetic->on_device = true;
        desc.self_draft = SelfDraft::q4_0;
        desc.max_context = 256;
        auto plan = Engine::plan(on_test_device(desc), warnings_to_stderr());
        ASSERT_TRUE(plan.ok()) << plan.status().message();
        auto engine = make_engine(desc);
        ASSERT_TRUE(engine);
        EXPECT_NEAR(static_cast<double>(engine->reserved_bytes()) / static_cast<double>(plan.value().total), 1, 0.02);
        EXPECT_GE(engine->draft()->weights().lm_head.shards.size(), 2u);
        EXPECT_NEAR(static_cast<double>(plan.value().draft_pass) / static_cast<double>(plan.value().target_pass), 0.28, 0.01);
    }
}

} // namespace
} // namespace auspex::self_draft_long
