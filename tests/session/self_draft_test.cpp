// Drafts by the target's own weights in fewer bits, in the target's own cache: texts and caches are those of plain decoding, whatever
// the copy says; a copy in equal bits is always right; and what would break that is seen.
#include "session/completions.h"
#include "session/gpu_contents.h"
#include "session/self_draft.h"
#include "test_shaders.h"

namespace auspex::self_draft_test {
namespace {

using namespace test;
using namespace test::self_drafts;

struct TextCase {
    SelfDraft self;
    DType cache;
    uint32_t slots;
    uint32_t draft_len;
};
class SelfDraftTexts : public ::testing::TestWithParam<TextCase> {};

TEST_P(SelfDraftTexts, greedy_and_coupled_are_plain) {
    const TextCase& at = GetParam();
    auto engine = make_engine(with_copy(at.self, at.slots, at.cache));
    ASSERT_TRUE(engine);
    EXPECT_EQ(&engine->draft()->cache(), &engine->target().cache());
    auto alone = make_engine(with_copy(SelfDraft::none, at.slots, at.cache));
    ASSERT_TRUE(alone);
    Sum sum;
    for (const float temperature : {0.0f, 1.0f}) {
        const auto plain = run_jobs(*alone, jobs_of(6, 0, temperature)), drafted = run_jobs(*engine, jobs_of(6, at.draft_len, temperature));
        for (size_t i = 0; i < plain.size(); ++i) {
            EXPECT_EQ(drafted[i].tokens, plain[i].tokens) << "temperature " << temperature << ", job " << i;
            sum.add(drafted[i].stats);
        }
    }
    EXPECT_GT(sum.rounds, 40u);
    EXPECT_GT(sum.accepted, sum.drafted / 10);
    EXPECT_LT(sum.accepted, sum.drafted) << "some are rejected, else this shows nothing";
}

std::string name_of(const ::testing::TestParamInfo<TextCase>& at) {
    return std::string(kSelfDraftNames[static_cast<size_t>(at.param.self)]) + "_" + std::string(dtype_name(at.param.cache)) + "_" + std::to_string(at.param.slots) + "_K" +
           std::to_string(at.param.draft_len);
}

INSTANTIATE_TEST_SUITE_P(pairwise, SelfDraftTexts,
                         ::testing::Values(TextCase{SelfDraft::q4_0, DType::f16, 1, 1}, TextCase{SelfDraft::q4_0, DType::f32, 8, 4}, TextCase{SelfDraft::q4_0, DType::q8_0, 8, 8},
                                           TextCase{SelfDraft::q4_k, DType::f16, 8, 3}, TextCase{SelfDraft::q4_k, DType::q8_0, 1, 5}, TextCase{SelfDraft::q4_k, DType::f32, 1, 8},
                                           TextCase{SelfDraft::q8_0, DType::f32, 8, 2}, TextCase{SelfDraft::q8_0, DType::q8_0, 1, 7}, TextCase{SelfDraft::q8_0, DType::f16, 8, 6}),
                         name_of);

// Automatic lengths, n-grams in between, and every sampling setting.
TEST(SelfDraft, auto_hybrid_and_transforms_are_plain) {
    auto engine = make_engine(with_copy(SelfDraft::q4_0, 4));
    ASSERT_TRUE(engine);
    SamplingParams transforms;
    transforms.repeat_penalty = 1.2f;
    transforms.presence_penalty = 0.1f;
    transforms.frequency_penalty = 0.1f;
    transforms.top_k = 40;
    transforms.top_p = 0.95f;
    transforms.min_p = 0.01f;
    transforms.biases = {{5, 1.0f}, {7, -INFINITY}};
    for (const DrafterChoice drafter : {DrafterChoice::automatic, DrafterChoice::hybrid, DrafterChoice::self}) {
        Sum sum;
        std::vector<Job> plain = jobs_of(6, 0, 0.9f), drafted = jobs_of(6, drafter == DrafterChoice::automatic ? kAutoDraftLen : 4, 0.9f, drafter);
        for (std::vector<Job>* jobs : {&plain, &drafted})
            for (Job& job : *jobs) job.transforms = transforms, job.ngram_max = 2;
        const auto expected = run_jobs(*engine, plain), found = run_jobs(*engine, drafted);
        for (size_t i = 0; i < plain.size(); ++i) {
            EXPECT_EQ(found[i].tokens, expected[i].tokens) << "drafter " << static_cast<int>(drafter) << ", job " << i;
            sum.add(found[i].stats);
        }
        if (drafter != DrafterChoice::automatic) { EXPECT_GT(sum.rounds, 20u); }
    }
}

TEST(SelfDraft, rounds_in_slices_are_plain) {
    EngineDesc desc = with_copy(SelfDraft::q4_0, 2);
    desc.max_submission_ms = 0.001;
    auto sliced = make_engine(desc), alone = make_engine(with_copy(SelfDraft::none));
    ASSERT_TRUE(sliced && alone);
    const auto plain = run_jobs(*alone, jobs_of(4, 0, 0)), drafted = run_jobs(*sliced, jobs_of(4, 3, 0));
    Sum sum;
    for (size_t i = 0; i < plain.size(); ++i) {
        EXPECT_EQ(drafted[i].tokens, plain[i].tokens) << "job " << i;
        sum.add(drafted[i].stats);
    }
    EXPECT_GT(sum.rounds, 40u);
}

// A copy in the target's own bits drafts what the target says, for ever: through plain rounds, forks, appended parts and small budgets.
TEST(SelfDraft, equal_weights_are_always_accepted) {
    for (const float temperature : {0.0f, 1.0f})
        for (const AcceptanceRule rule : {AcceptanceRule::rejection, AcceptanceRule::coupled}) {
            auto engine = make_engine(with_copy(SelfDraft::as_is, 3));
            ASSERT_TRUE(engine);
            Job job = jobs_of(3, 4, temperature)[2];
            job.acceptance = rule;
            job.max_tokens = 50;
            const uint64_t id = engine->create_sequence(job.request()).value();
            const LiveSequence& first = *find_sequence(*engine, id);
            size_t changes = 0;
            drive(*engine, [&] { // now with drafts, now without
                const size_t due = first.output.size() / 7;
                if (due > changes && first.stop == StopReason::none) {
                    changes = due;
                    EXPECT_TRUE(set_draft_len(*engine, id, due % 2 == 1 ? 0 : 1 + static_cast<uint32_t>(due % 8)).ok());
                }
                return false;
            }, 0.05);
            ASSERT_FALSE(HasFatalFailure());
            SequenceRequest fork = job.request();
            fork.prompt.clear();
            fork.sampling.seed = 99;
            const uint64_t forked = engine->fork_sequence(id, fork).value();
            Job more = jobs_of(8, 5, temperature)[7];
            more.acceptance = rule;
            drive(*engine);
            ASSERT_TRUE(engine->append_sequence(id, more.request()).ok());
            drive(*engine);
            for (const uint64_t one : {id, forked}) {
                const SequenceStats& stats = find_sequence(*engine, one)->stats;
                EXPECT_GT(stats.draft_n, 10u);
                EXPECT_EQ(stats.draft_n_accepted, stats.draft_n) << "temperature " << temperature << ", rule " << static_cast<int>(rule);
            }
        }
}

// What no row has written is no number.
void poison(Engine& engine) {
    const KvCache& cache = engine.target().cache();
    run_recorded(engine.device(), [&](Recording& cmd) {
        cmd.transfer_barrier();
        for (uint32_t layer = 0; layer < cache.shape().n_layers; ++layer)
            for (const BufferView pool : {cache.k(layer), cache.v(layer)}) cmd.fill(pool, 0x7fff7fffu);
        cmd.transfer_barrier();
    });
}

// Everything that rounds with drafts left in the cache, beside the same text without a draft.
std::string difference_to_plain(Engine& engine, const Job& job, Sum& sum) {
    const auto run = [&](uint32_t draft_len) {
        Job one = job;
        one.draft_len = draft_len;
        const uint64_t id = engine.create_sequence(one.request()).value();
        drive(engine);
        return id;
    };
    poison(engine);
    const uint64_t drafted = run(job.draft_len), plain = run(0);
    const LiveSequence &a = *find_sequence(engine, drafted), &b = *find_sequence(engine, plain);
    sum.add(a.stats);
    std::string found = a.tokens != b.tokens ? "other tokens" : "";
    const uint32_t rows = std::min(a.target_len, b.target_len);
    EXPECT_EQ(slot_state(engine, a.slot->number).draft_cache_len, 0u);
    if (found.empty()) found = first_difference(engine.target().cache().shape(), cache_rows(engine, engine.target(), b.slot->number, rows), cache_rows(engine, engine.target(), a.slot->number, rows));
    EXPECT_TRUE(destroy_sequence(engine, drafted).ok() && destroy_sequence(engine, plain).ok());
    return found;
}

TEST(SelfDraft, the_cache_is_that_of_plain_decoding) {
    const auto cases = {std::pair{SelfDraft::q4_0, DType::f16}, {SelfDraft::q4_0, DType::f32}, {SelfDraft::q4_0, DType::q8_0}, {SelfDraft::q4_k, DType::q8_0}, {SelfDraft::q8_0, DType::f16}};
    for (const auto& [self, cache] : cases) {
        EngineDesc desc = with_copy(self, 2, cache);
        desc.adjust_tuning = [](Tuning& tuning) { tuning.prompt_by_rows = false; }; // two families in one cache
        auto engine = make_engine(desc);
        ASSERT_TRUE(engine);
        Sum sum;
        for (const float temperature : {0.0f, 1.0f})
            for (const uint32_t draft_len : self == SelfDraft::q4_0 ? std::vector<uint32_t>{1, 4, 8} : std::vector<uint32_t>{5})
                for (const Job& job : jobs_of(2, draft_len, temperature))
                    EXPECT_EQ(difference_to_plain(*engine, job, sum), "")
                        << kSelfDraftNames[static_cast<size_t>(self)] << ", " << dtype_name(cache) << ", draft_len " << draft_len << ", temperature " << temperature;
        EXPECT_LT(sum.accepted, sum.drafted);
        ASSERT_TRUE(drain(*engine).ok());
        EXPECT_EQ(engine->target().cache().n_free_pages(), engine->target().cache().shape().n_pages);
    }
}

// Faults of rows and of the slot's state that a shared cache makes possible.
TEST(SelfDraft, rows_that_the_target_does_not_write_again_are_seen) {
    for (const std::string fault : {"rows.fault1", "rows.fault2", "accept_commit.fault1"}) {
        auto engine = make_engine(with_copy(SelfDraft::q4_0, 2));
        ASSERT_TRUE(engine);
        const auto spirv = test_shader(fault);
        ASSERT_FALSE(spirv.empty()) << fault;
        engine->kernels().replace(fault.substr(0, fault.find('.')), spirv);
        Sum sum;
        std::string found;
        for (const Job& job : jobs_of(4, 4, 0))
            if (found.empty()) found = difference_to_plain(*engine, job, sum);
        EXPECT_NE(found, "") << fault;
    }
}

// Its own plain text has the same fault: texts of an engine that has no copy show it.
TEST(SelfDraft, the_copys_head_in_the_targets_pass_is_seen) {
    auto faulty = make_engine(with_copy(SelfDraft::q4_0)), alone = make_engine(with_copy(SelfDraft::none));
    ASSERT_TRUE(faulty && alone);
    auto& of_target = const_cast<LlamaWeights&>(faulty->target().weights());
    auto& of_copy = const_cast<LlamaWeights&>(faulty->draft()->weights());
    ASSERT_FALSE(of_target.config.tied_embedding);
    std::swap(of_target.lm_head, of_copy.lm_head);
    const auto expected = run_jobs(*alone, jobs_of(6, 0, 0)), plain = run_jobs(*faulty, jobs_of(6, 0, 0)), drafted = run_jobs(*faulty, jobs_of(6, 4, 0));
    size_t n_different = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(drafted[i].tokens, plain[i].tokens) << "this comparison sees nothing";
        n_different += drafted[i].tokens != expected[i].tokens;
    }
    EXPECT_GT(n_different, 0u);
}

// A draft was drawn from what the copy says; tested as if the target had drawn it, it is always accepted.
TEST(SelfDraft, q_from_the_wrong_weights_is_seen) {
    auto engine = make_engine(tiny_with_copy());
    ASSERT_TRUE(engine);
    const auto spirv = test_shader("accept_test.fault1");
    ASSERT_FALSE(spirv.empty());
    engine->kernels().replace("accept_test", spirv);
    Completions found;
    EXPECT_LT(fit_of(*engine, 8000, found).p_value, 1e-6);
    EXPECT_EQ(found.accepted, found.drafted);
}

TEST(SelfDraft, completions_have_the_targets_distribution) { expect_the_targets_distribution(20'000); }

// The copy's head, several shards of it, takes what the plan says and no more; there is no second cache.
TEST(SelfDraft, memory_is_what_was_planned) {
    for (const SelfDraft self : {SelfDraft::none, SelfDraft::q4_0, SelfDraft::q8_0}) {
        EngineDesc desc = with_copy(self);
        desc.target_synthetic->config.tied_embedding = true;
        desc.target_synthetic->config.vocab_size = 4096;
        desc.adjust_caps = [](DeviceCaps& caps) { caps.max_storage_buffer_range = 300 << 10; };
        desc.max_draft_len = 4;
        desc.max_context = 64;
        auto plan = Engine::plan(on_test_device(desc), warnings_to_stderr());
        ASSERT_TRUE(plan.ok()) << plan.status().message();
        auto engine = make_engine(desc);
        ASSERT_TRUE(engine);
        EXPECT_EQ(plan.value().total, engine->reserved_bytes());
        EXPECT_EQ(plan.value().draft_cache, 0u);
        EXPECT_EQ(plan.value().draft_weights > 0, self != SelfDraft::none);
        if (self == SelfDraft::none) continue;
        EXPECT_EQ(engine->draft()->weights().embedding.shards.size(), 0u);
        EXPECT_GE(engine->draft()->weights().lm_head.shards.size(), 2u);
        EXPECT_EQ(plan.value().draft_weights, engine->draft()->weights().bytes());
        EXPECT_LT(plan.value().draft_pass, plan.value().target_pass * (self == SelfDraft::q4_0 ? 30 : 55) / 100);
    }
}

// The copy's embedding table is not loaded, where that is no head either.
TEST(SelfDraft, progress_ends_when_all_is_loaded) {
    for (const bool tied : {false, true}) {
        EngineDesc desc = with_copy(SelfDraft::q4_0);
        desc.target_synthetic->config.tied_embedding = tied;
        std::vector<float> told;
        desc.progress = [&](float fraction) { told.push_back(fraction); };
        ASSERT_TRUE(make_engine(desc));
        EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
        EXPECT_GE(told.back(), 0.999f) << (tied ? "tied" : "untied");
        EXPECT_LT(told[told.size() - 2], 0.999f);
    }
}

TEST(SelfDraft, what_saves_too_little_is_refused) {
    const auto refusal = [](DType target, SelfDraft self) {
        EngineDesc desc = with_copy(self);
        desc.target_type = target;
        auto made = Engine::create(on_test_device(desc), {});
        return made.ok() ? std::string() : made.status().message();
    };
    const std::string message = refusal(DType::q8_0, SelfDraft::q8_0);
    EXPECT_NE(message.find("self_draft_weights as q8_0 would take "), std::string::npos) << message;
    EXPECT_NE(message.find(", expected to save at least a quarter"), std::string::npos) << message;
    EXPECT_NE(refusal(DType::q4_0, SelfDraft::q4_0), "");
    EXPECT_EQ(refusal(DType::q8_0, SelfDraft::q4_0), "");
    EXPECT_EQ(refusal(DType::q4_0, SelfDraft::as_is), "");
    EngineDesc both = with_copy(SelfDraft::q4_0);
    both.draft_synthetic = both.target_synthetic;
    EXPECT_NE(Engine::create(on_test_device(both), {}).status().message().find("both given, expected one of them"), std::string::npos);
}

// Without a copy nobody drafts where self was asked for, and with one nobody where the draft model was.
TEST(SelfDraft, an_engine_has_one_drafter_with_passes) {
    for (const SelfDraft self : {SelfDraft::none, SelfDraft::q4_0})
        for (const DrafterChoice drafter : {DrafterChoice::self, DrafterChoice::model}) {
            auto engine = make_engine(with_copy(self));
            ASSERT_TRUE(engine);
            const Answer answer = run_jobs(*engine, jobs_of(1, 3, 0, drafter))[0];
            EXPECT_EQ(answer.stats.draft_n > 0, self != SelfDraft::none && drafter == DrafterChoice::self);
        }
}

} // namespace
} // namespace auspex::self_draft_test
