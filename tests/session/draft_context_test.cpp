// A draft whose context is shorter than the target's: it drafts as far as it goes, and the text goes on as if nothing had ended.
#include "session/engine_fixture.h"

#include <chrono>
#include <thread>

namespace auspex::draft_context_test {
namespace {

using namespace test;

constexpr uint32_t kVocab = 61, kContext = 200, kDraftContext = 70; // no multiple of a page

// A twin of the target with another context knows every token, another seed next to none.
EngineDesc pair_of(uint64_t draft_seed, uint32_t slots = 1) {
    EngineDesc desc;
    desc.target_synthetic = random_model({.vocab = kVocab, .scale = 0.2f}, 1);
    desc.draft_synthetic = random_model({.vocab = kVocab, .scale = 0.2f}, draft_seed, kDraftContext);
    desc.max_sequences = slots;
    desc.max_context = kContext;
    return desc;
}

constexpr uint32_t kPromptLens[] = {1, 30, 66, 69, 70, 71, 72, 120}; // up to, around and after the draft's context

TEST(DraftContext, is_the_drafts_alone) {
    EngineDesc desc = pair_of(1);
    auto engine = make_engine(desc);
    ASSERT_TRUE(engine);
    EXPECT_EQ(engine->max_context(), kContext);
    EXPECT_EQ(engine->target().cache().shape().max_rows, kContext);
    EXPECT_EQ(engine->draft()->cache().shape().max_rows, kDraftContext);
    const auto bytes = [](const LlamaModel& model, uint32_t pages) { return 16 * pages * KvCache::bytes_per_token(model.cache().shape()); };
    for (const MemoryPlan& plan : {engine->memory_plan(), Engine::plan(desc, {}).value()}) {
        EXPECT_EQ(plan.target_cache, bytes(engine->target(), 13));
        EXPECT_EQ(plan.draft_cache, bytes(*engine->draft(), 5));
        EXPECT_EQ(plan.max_context, kContext);
    }
    desc.max_context = 0;
    EXPECT_EQ(make_engine(desc)->max_context(), 512u);
    desc.max_context = 513;
    const Status status = Engine::create(desc, {}).status();
    EXPECT_EQ(status.code(), Code::invalid_argument);
    EXPECT_NE(status.message().find("at most 512 of the target"), std::string::npos) << status.message();
    desc.max_context = 40; // below both
    EXPECT_EQ(make_engine(desc)->draft()->cache().shape().max_rows, 40u);
    // A pass of the draft after its context is refused, one of the target is not.
    EXPECT_EQ(engine->measure_pass({.of = ModelRole::draft, .n_rows = 1, .depth = kDraftContext, .repetitions = 1}).status().code(), Code::capacity);
    EXPECT_TRUE(engine->measure_pass({.of = ModelRole::draft, .n_rows = 1, .depth = kDraftContext - 1, .repetitions = 1}).ok());
    EXPECT_TRUE(engine->measure_pass({.n_rows = 1, .depth = kDraftContext, .repetitions = 1}).ok());
}

// All drafts of a twin are accepted up to the last row that its cache holds, with no hole, and there are none after it.
TEST(DraftContext, drafts_reach_its_end_and_go_no_further) {
    auto engine = make_engine(pair_of(1));
    ASSERT_TRUE(engine);
    for (float temperature : {0.0f, 1.0f})
        for (uint32_t draft_len : {1u, 3u, 8u})
            for (uint32_t n : kPromptLens) {
                const Answer answer = run_job(*engine, {.prompt = random_prompt(n, kVocab, n), .max_tokens = 79, .draft_len = draft_len, .temperature = temperature});
                EXPECT_EQ(answer.stop, StopReason::length);
                EXPECT_EQ(answer.stats.draft_n_accepted, answer.stats.draft_n);
                uint32_t drafted = 0;
                for (uint32_t start = n - 1; start < kDraftContext;) { // rows before the round
                    const uint32_t k = std::min(draft_len, kDraftContext - start);
                    drafted += k;
                    start += k + 1;
                }
                EXPECT_EQ(answer.stats.draft_n, drafted) << n << " tokens of prompt, draft_len " << draft_len;
            }
}

// Rounds after it have the plain form: no row is computed for drafts that cannot come.
TEST(DraftContext, rounds_after_it_are_plain) {
    auto engine = make_engine(pair_of(1));
    ASSERT_TRUE(engine);
    run_job(*engine, {.prompt = random_prompt(60, kVocab, 1), .max_tokens = 60, .draft_len = 4});
    EXPECT_LE(take_round_times(*engine, 4).rounds, 6u); // two or three that draft, and what was queued before the host knew
    EXPECT_GT(take_round_times(*engine, 0).rounds, 40u);
    run_job(*engine, {.prompt = random_prompt(90, kVocab, 1), .max_tokens = 20, .draft_len = 4});
    EXPECT_EQ(take_round_times(*engine, 4).rounds, 0u);
}

class DraftContextTexts : public ::testing::TestWithParam<DrafterChoice> {};

// Greedy and coupled, whatever comes first: the text of no drafts. Where repeated text gives proposals, hybrid goes on with them.
TEST_P(DraftContextTexts, are_plain_texts) {
    for (uint64_t draft_seed : {1u, 2u}) {
        auto engine = make_engine(pair_of(draft_seed, 3));
        ASSERT_TRUE(engine);
        std::array<uint32_t, 5> rounds = {};
        for (AcceptanceRule acceptance : {AcceptanceRule::rejection, AcceptanceRule::coupled}) {
            std::vector<Job> plain, drafted;
            for (uint32_t n : kPromptLens) {
                Job job = {.prompt = random_prompt(n, kVocab, n), .max_tokens = 70, .temperature = acceptance == AcceptanceRule::coupled ? 1.0f : 0.0f, .seed = n, .acceptance = acceptance};
                job.transforms.biases = {{5, 9.0f}, {6, 9.0f}, {7, 9.0f}}; // often the same words
                plain.push_back(job);
                job.draft_len = GetParam() == DrafterChoice::automatic ? kAutoDraftLen : 4;
                job.drafter = GetParam();
                drafted.push_back(job);
            }
            const auto expected = run_jobs(*engine, plain), found = run_jobs(*engine, drafted);
            for (size_t i = 0; i < plain.size(); ++i) {
                EXPECT_EQ(found[i].tokens, expected[i].tokens) << kPromptLens[i] << " tokens of prompt";
                EXPECT_EQ(found[i].stop, StopReason::length);
                for (size_t d = 0; d < rounds.size(); ++d) rounds[d] += found[i].stats.drafter_rounds[d];
            }
        }
        if (GetParam() != DrafterChoice::automatic) { EXPECT_GT(rounds[static_cast<size_t>(Drafter::model)], 20u); }
        if (GetParam() == DrafterChoice::hybrid) { EXPECT_GT(rounds[static_cast<size_t>(Drafter::ngram)], 20u); }
    }
}

INSTANTIATE_TEST_SUITE_P(, DraftContextTexts, ::testing::Values(DrafterChoice::model, DrafterChoice::hybrid, DrafterChoice::automatic),
                         [](const auto& at) { return at.param == DrafterChoice::model ? "model" : at.param == DrafterChoice::hybrid ? "hybrid" : "automatic"; });

// Sampled by rejection a text depends on how many drafts each round had: whether the host reads at once or late, and in whatever
// company, a seed gives its text again.
TEST(DraftContext, a_seed_gives_its_text_again) {
    auto engine = make_engine(pair_of(2, 4));
    ASSERT_TRUE(engine);
    for (DrafterChoice drafter : {DrafterChoice::model, DrafterChoice::hybrid}) {
        std::vector<Job> jobs;
        for (uint32_t n : {20u, 61u, 66u, 71u}) {
            Job job = {.prompt = random_prompt(n, kVocab, n), .max_tokens = 80, .draft_len = 3, .temperature = 1, .seed = n, .drafter = drafter};
            job.transforms.biases = {{5, 15.0f}, {6, 15.0f}};
            jobs.push_back(job);
        }
        const auto together = run_jobs(*engine, jobs);
        std::array<uint32_t, 5> rounds = {};
        for (size_t i = 0; i < jobs.size(); ++i) {
            for (uint32_t late_one_in : {0u, 1u, 2u}) {
                auto id = engine->create_sequence(jobs[i].request());
                ASSERT_TRUE(id.ok());
                uint32_t n_steps = 0;
                drive(*engine, [&] {
                    if (late_one_in > 0 && ++n_steps % late_one_in == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10)); // all in flight is done
                    return false;
                });
                const Answer answer = answer_of(*engine, id.value());
                EXPECT_EQ(answer.tokens, together[i].tokens) << jobs[i].prompt.size() << " tokens of prompt, late every " << late_one_in;
                for (size_t d = 0; d < rounds.size(); ++d) rounds[d] += answer.stats.drafter_rounds[d];
                ASSERT_TRUE(destroy_sequence(*engine, id.value()).ok());
            }
        }
        EXPECT_GT(rounds[static_cast<size_t>(Drafter::model)], 40u);
        if (drafter == DrafterChoice::hybrid) { EXPECT_GT(rounds[static_cast<size_t>(Drafter::ngram)], 40u); }
    }
}

// Drafts that begin late must be caught up with, as far as there is anything to catch up for.
TEST(DraftContext, catching_up_ends_with_it) {
    auto engine = make_engine(pair_of(1));
    ASSERT_TRUE(engine);
    for (uint32_t plain_first : {10u, 30u, 39u, 41u, 45u}) { // after a prompt of 30
        Job job = {.prompt = random_prompt(30, kVocab, 3), .max_tokens = 90};
        const Answer expected = run_job(*engine, job);
        auto id = engine->create_sequence(job.request());
        ASSERT_TRUE(id.ok());
        LiveSequence* sequence = find_sequence(*engine, id.value());
        drive(*engine, [&] { return sequence->n_generated() >= plain_first; });
        ASSERT_TRUE(set_draft_len(*engine, id.value(), 4).ok());
        drive(*engine);
        const Answer answer = answer_of(*engine, id.value());
        EXPECT_EQ(answer.tokens, expected.tokens) << plain_first;
        EXPECT_EQ(answer.stats.draft_n_accepted, answer.stats.draft_n);
        EXPECT_EQ(answer.stats.draft_n > 0, plain_first < 39) << plain_first;
        ASSERT_TRUE(destroy_sequence(*engine, id.value()).ok());
    }
}

// Forks of prompts that are read ahead, also of one that the draft will never read, and conversations that outgrow it.
TEST(DraftContext, forks_and_appends_cross_it) {
    auto engine = make_engine(pair_of(1, 4));
    ASSERT_TRUE(engine);
    for (uint32_t n : kPromptLens) {
        const Job job = {.prompt = random_prompt(n, kVocab, n), .max_tokens = 20, .draft_len = 4};
        Job plain = job;
        plain.draft_len = 0;
        const Answer expected = run_job(*engine, plain);
        SequenceRequest held = job.request();
        held.max_tokens = kHoldTokens;
        auto source = engine->create_sequence(held);
        ASSERT_TRUE(source.ok());
        drive(*engine);
        SequenceRequest request = job.request();
        request.prompt.clear();
        auto fork = engine->fork_sequence(source.value(), request);
        ASSERT_TRUE(fork.ok());
        drive(*engine);
        EXPECT_EQ(answer_of(*engine, fork.value()).tokens, expected.tokens) << n << " tokens of prompt";

        // A second part after the fork's text, with and without drafts.
        std::vector<std::vector<uint32_t>> parts;
        for (uint32_t draft_len : {0u, 4u}) {
            request.draft_len = draft_len;
            auto again = engine->fork_sequence(fork.value(), request);
            ASSERT_TRUE(again.ok());
            SequenceRequest next = request;
            next.prompt = random_prompt(9, kVocab, 5);
            next.max_tokens = 20;
            drive(*engine);
            ASSERT_TRUE(engine->append_sequence(again.value(), next).ok());
            drive(*engine);
            parts.push_back(find_sequence(*engine, again.value())->tokens);
            ASSERT_TRUE(destroy_sequence(*engine, again.value()).ok());
        }
        EXPECT_EQ(parts[0], parts[1]) << n << " tokens of prompt";
        for (uint64_t id : {source.value(), fork.value()}) ASSERT_TRUE(destroy_sequence(*engine, id).ok());
        EXPECT_TRUE(drain(*engine).ok());
        EXPECT_EQ(engine->draft()->cache().n_free_pages(), engine->draft()->cache().shape().n_pages);
    }
}

} // namespace
} // namespace auspex::draft_context_test
