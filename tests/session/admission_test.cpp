// Pools that are smaller than slots times context: who is let in comes to its end, with the text of a pool that is large enough.
#include "session/engine_fixture.h"

#include <map>

namespace auspex::admission_test {
namespace {

using namespace test;

constexpr uint32_t kVocab = 61, kContext = 160, kPage = 16, kMaxDraftLen = 4;

EngineDesc engine_with(uint32_t slots, uint64_t cache_tokens, bool has_draft = true) {
    const Shape shape = {.vocab = kVocab, .scale = 0.2f};
    EngineDesc desc;
    desc.target_synthetic = random_model(shape, 1);
    if (has_draft) desc.draft_synthetic = random_model(shape, 2);
    desc.max_sequences = slots;
    desc.max_context = kContext;
    desc.max_draft_len = kMaxDraftLen;
    desc.cache_tokens = cache_tokens;
    return desc;
}
uint32_t pages_for(uint32_t n_rows) { return (n_rows + kPage - 1) / kPage; }
// To begin with: rows of the prompt, of one round, and a page for what comes.
uint32_t pages_to_begin(uint32_t n_prompt) { return pages_for(std::min(n_prompt + kMaxDraftLen + 1 + kPage, kContext)); }
uint32_t n_free(Engine& engine) { return engine.target().cache().n_free_pages(); }
Job job_of(uint32_t prompt, uint32_t max_tokens, uint64_t seed = 1) {
    return {.prompt = random_prompt(prompt, kVocab, seed), .max_tokens = max_tokens, .draft_len = 3, .temperature = 0.8f, .seed = seed};
}

TEST(Admission, promises_what_a_sequence_needs_to_begin) {
    ASSERT_EQ(pages_to_begin(20), 3u); // 41 rows
    auto engine = make_engine(engine_with(8, kContext)); // 10 pages
    ASSERT_TRUE(engine);
    std::vector<uint64_t> ids;
    for (int i = 0; i < 3; ++i) ids.push_back(engine->create_sequence(job_of(20, 50).request()).value());
    EXPECT_EQ(n_free(*engine), 10u) << "nothing was taken so far";
    const Status fourth = engine->create_sequence(job_of(20, 1).request()).status();
    EXPECT_EQ(fourth.code(), Code::capacity);
    EXPECT_NE(fourth.message().find("needs 2 pages of the target's cache to begin, and 1 of its 10"), std::string::npos) << fourth.message();
    EXPECT_TRUE(engine->create_sequence({random_prompt(16, kVocab, 1), kHoldTokens, {}, 0, true}).ok()) << "it reads its prompt only: 15 rows";
    EXPECT_EQ(engine->create_sequence({random_prompt(16, kVocab, 1), kHoldTokens, {}, 0, true}).status().code(), Code::capacity);
    // Pages of a sequence that goes are promised anew although turns under way still use them.
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(step(*engine, -1).ok());
    ASSERT_LT(n_free(*engine), 10u);
    ASSERT_TRUE(destroy_sequence(*engine, ids[0]).ok());
    const auto after = engine->create_sequence(job_of(20, 50, 3).request());
    ASSERT_TRUE(after.ok()) << after.status().message();
    drive(*engine);
    for (uint64_t id : {ids[1], ids[2], after.value()}) EXPECT_EQ(find_sequence(*engine, id)->n_generated(), 50u);
}

// Forks of a prompt need little where as many sequences with that prompt do not fit.
TEST(Admission, forks_need_what_they_do_not_share) {
    auto engine = make_engine(engine_with(6, kContext, false));
    ASSERT_TRUE(engine);
    const uint64_t source = engine->create_sequence({random_prompt(81, kVocab, 1), kHoldTokens, {}, 0, true}).value(); // 5 full pages
    Job little = job_of(81, 6); // 92 rows to begin with: 1 page beyond
    EXPECT_EQ(engine->create_sequence(little.request()).status().code(), Code::capacity);
    little.prompt.clear();
    std::vector<uint64_t> forks;
    for (int i = 0; i < 5; ++i) { // 5 pages of the source, 1 of each fork
        auto fork = engine->fork_sequence(source, little.request());
        ASSERT_TRUE(fork.ok()) << fork.status().message();
        forks.push_back(fork.value());
    }
    EXPECT_EQ(engine->fork_sequence(source, little.request()).status().code(), Code::capacity);
    drive(*engine);
    for (uint64_t id : forks) EXPECT_EQ(find_sequence(*engine, id)->n_generated(), 6u);
}

// A source that goes before its forks are copied is still owed the pages of its prompt.
TEST(Admission, a_prompt_that_forks_wait_for_keeps_its_promise) {
    auto engine = make_engine(engine_with(4, kContext, false));
    ASSERT_TRUE(engine);
    Job job = job_of(81, 6);
    const Answer alone = run_job(*engine, job);
    const uint64_t source = engine->create_sequence({job.prompt, kHoldTokens, {}, 0, true}).value(); // 5 pages
    job.prompt.clear();
    const uint64_t fork = engine->fork_sequence(source, job.request()).value(); // 1 page
    ASSERT_TRUE(destroy_sequence(*engine, source).ok());
    EXPECT_EQ(engine->create_sequence(job_of(60, 30).request()).status().code(), Code::capacity); // 6 pages of 4
    EXPECT_TRUE(engine->create_sequence(job_of(20, 18).request()).ok());
    drive(*engine);
    EXPECT_EQ(answer_of(*engine, fork).tokens, alone.tokens);
}

TEST(Admission, drafts_from_the_text_take_no_pages_of_the_draft) {
    auto engine = make_engine(engine_with(2, 0));
    ASSERT_TRUE(engine);
    const KvCache& cache = engine->draft()->cache();
    Job searching = job_of(40, 40);
    searching.drafter = DrafterChoice::ngram;
    const uint64_t id = engine->create_sequence(searching.request()).value();
    drive(*engine);
    EXPECT_EQ(cache.n_free_pages(), cache.shape().n_pages);
    Job fork = job_of(1, 5);
    fork.prompt.clear();
    fork.drafter = DrafterChoice::model;
    const uint64_t by_model = engine->fork_sequence(id, fork.request()).value();
    drive(*engine);
    EXPECT_LT(cache.n_free_pages(), cache.shape().n_pages);
    EXPECT_GT(find_sequence(*engine, by_model)->stats.draft_n, 0u);
    // Nor does such a fork of a sequence whose drafts are the model's.
    const uint32_t before = cache.n_free_pages();
    ASSERT_TRUE(destroy_sequence(*engine, id).ok());
    fork.drafter = DrafterChoice::ngram;
    ASSERT_TRUE(engine->fork_sequence(by_model, fork.request()).ok());
    drive(*engine);
    EXPECT_EQ(cache.n_free_pages(), before);
}

// Sequences, forks and second parts come as soon as they are let in, and go at random: every text is that of a roomy pool, nobody
// waits for ever, and no page is lost.
TEST(Admission, a_tight_pool_changes_no_text) {
    auto roomy = make_engine(engine_with(8, 0)), tight = make_engine(engine_with(8, 14 * kPage));
    ASSERT_TRUE(roomy && tight);
    std::vector<Job> jobs;
    for (uint64_t i = 0; i < 32; ++i) {
        Job job = job_of(static_cast<uint32_t>(1 + i * 13 % 70), static_cast<uint32_t>(4 + i * 7 % 41), i + 1);
        job.draft_len = static_cast<uint32_t>(i % (kMaxDraftLen + 1));
        if (i % 4 == 1) job.drafter = DrafterChoice::ngram;
        jobs.push_back(job);
    }
    const std::vector<Answer> expected = run_jobs(*roomy, jobs);

    std::map<uint64_t, size_t> live; // sequence, job
    std::map<uint64_t, uint32_t> going; // company that nobody reads: sequences, steps until they are destroyed
    uint32_t n_refused = 0, moves = 0;
    size_t next = 0;
    const auto stir = [&] {
        ++moves;
        for (auto it = live.begin(); it != live.end();) {
            const LiveSequence* sequence = find_sequence(*tight, it->first);
            if (sequence->stop == StopReason::none) {
                ++it;
                continue;
            }
            const Answer answer = answer_of(*tight, it->first);
            EXPECT_EQ(answer.tokens, expected[it->second].tokens) << "job " << it->second;
            EXPECT_TRUE(destroy_sequence(*tight, it->first).ok());
            it = live.erase(it);
        }
        for (auto it = going.begin(); it != going.end();) {
            if (--it->second > 0) {
                ++it;
                continue;
            }
            EXPECT_TRUE(destroy_sequence(*tight, it->first).ok());
            it = going.erase(it);
        }
        if (next < jobs.size()) {
            auto made = tight->create_sequence(jobs[next].request());
            if (made.ok()) live[made.value()] = next++;
            else {
                EXPECT_EQ(made.status().code(), Code::capacity) << made.status().message();
                ++n_refused;
            }
        }
        if (!live.empty() && moves % 3 == 0) {
            Job fork = job_of(1, 9, moves);
            fork.prompt.clear();
            if (auto made = tight->fork_sequence(live.begin()->first, fork.request()); made.ok()) going[made.value()] = 1 + moves % 5;
            else EXPECT_EQ(made.status().code(), Code::capacity) << made.status().message();
        }
        if (!going.empty() && moves % 5 == 0) {
            const uint64_t id = going.rbegin()->first;
            ASSERT_TRUE(cancel_sequence(*tight, id).ok());
            const Status appended = tight->append_sequence(id, job_of(7, 12, moves).request());
            EXPECT_TRUE(appended.ok() || appended.code() == Code::capacity) << appended.message();
        }
    };
    while ((next < jobs.size() || !live.empty() || !going.empty()) && !HasFatalFailure()) {
        stir();
        drive(*tight, [&] { return true; }); // one step
        auto waited = tight->turns().wait(300'000'000'000);
        ASSERT_TRUE(waited.ok());
        ASSERT_LT(moves, 20000u) << "somebody waits for ever";
    }
    drive(*tight);
    EXPECT_GT(n_refused, 10u);
    EXPECT_EQ(n_free(*tight), 14u);
    EXPECT_EQ(tight->draft()->cache().n_free_pages(), 14u);
}

TEST(Admission, a_pool_below_one_context_is_refused) {
    const auto made = Engine::create(on_test_device(engine_with(2, kContext - 1)), warnings_to_stderr());
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.status().code(), Code::invalid_argument);
    EXPECT_NE(made.status().message().find("cache_tokens is 159, expected at least the context of 160"), std::string::npos) << made.status().message();
}

} // namespace
} // namespace auspex::admission_test
