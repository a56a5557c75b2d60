// Limits and lives: lengths, stops, contexts, forks, cancelling and destroying at any time; pages return, texts stay.
#include "session/gpu_contents.h"
#include "session/prompts.h"

namespace auspex::lifecycle_test {
namespace {

using namespace test;

constexpr uint32_t kVocab = 61;

EngineDesc pair(uint32_t slots, uint32_t context, uint64_t draft_seed = 2) {
    const Shape shape = {.vocab = kVocab, .scale = 0.2f};
    EngineDesc desc;
    desc.target_synthetic = random_model(shape, 1);
    desc.draft_synthetic = random_model(shape, draft_seed);
    desc.max_sequences = slots;
    desc.max_context = context;
    return desc;
}
std::vector<uint32_t> prompt(uint32_t n, uint64_t seed = 1) {
    return random_prompt(n, kVocab, seed);
}

TEST(Lifecycle, a_shorter_run_is_a_prefix_of_a_longer_one) {
    auto engine = make_engine(pair(8, 200));
    ASSERT_TRUE(engine);
    for (float temperature : {0.0f, 1.0f})
        for (uint32_t draft_len : {0u, 3u, 7u}) {
            std::vector<Job> jobs;
            for (uint32_t n : {60u, 1u, 2u, 3u, 4u, 5u, 9u, 31u, 32u})
                jobs.push_back({.prompt = prompt(9), .max_tokens = n, .draft_len = draft_len, .temperature = temperature, .seed = 77});
            const auto answers = run_jobs(*engine, jobs);
            for (size_t i = 0; i < jobs.size(); ++i) {
                std::vector<uint32_t> start = answers[0].tokens;
                start.resize(jobs[i].max_tokens);
                EXPECT_EQ(answers[i].tokens, start) << "draft_len " << draft_len << ", " << jobs[i].max_tokens << " tokens";
                EXPECT_EQ(answers[i].stop, StopReason::length);
                EXPECT_LE(answers[i].stats.draft_n, answers[i].stats.rounds * draft_len);
                EXPECT_LE(answers[i].stats.draft_n_accepted, answers[i].tokens.size());
            }
        }
}

TEST(Lifecycle, the_end_token_stops_and_is_the_last) {
    EngineDesc desc = pair(8, 200);
    desc.target_synthetic->config.eos_ids = {2, 3, 59};
    auto engine = make_engine(desc);
    ASSERT_TRUE(engine);
    std::vector<Job> jobs;
    for (float temperature : {0.0f, 1.5f})
        for (uint64_t seed = 1; seed <= 6; ++seed)
            for (uint32_t draft_len : {0u, 2u, 5u})
                jobs.push_back({.prompt = prompt(5, seed), .max_tokens = 120, .draft_len = draft_len, .temperature = temperature, .seed = seed});
    const auto endless = run_jobs(*engine, jobs);
    for (Job& job : jobs) job.ignore_eos = false;
    const auto ended = run_jobs(*engine, jobs);
    uint32_t stopped = 0;
    for (size_t i = 0; i < jobs.size(); ++i) {
        const auto is_end = [](uint32_t token) { return token == 2 || token == 3 || token == 59; };
        auto end = std::find_if(endless[i].tokens.begin(), endless[i].tokens.end(), is_end);
        const bool found = end != endless[i].tokens.end();
        if (found) ++end;
        EXPECT_EQ(ended[i].tokens, std::vector<uint32_t>(endless[i].tokens.begin(), end));
        EXPECT_EQ(ended[i].stop, found ? StopReason::eos : StopReason::length);
        stopped += found;
    }
    EXPECT_GT(stopped, 12u);
}

TEST(Lifecycle, the_context_end_is_the_same_with_and_without_drafts) {
    for (uint32_t context : {33u, 64u, 65u}) {
        auto engine = make_engine(pair(4, context, 1)); // all drafts are accepted: the strongest push against the end
        ASSERT_TRUE(engine);
        std::vector<Job> plain, speculative;
        for (uint32_t n : {1u, 5u, context - 9, context - 3, context - 2, context - 1})
            for (uint32_t draft_len : {1u, 4u, 8u}) {
                plain.push_back({.prompt = prompt(n)});
                speculative.push_back({.prompt = prompt(n), .draft_len = draft_len});
            }
        const auto expected = run_jobs(*engine, plain), found = run_jobs(*engine, speculative);
        for (size_t i = 0; i < plain.size(); ++i) {
            EXPECT_EQ(expected[i].tokens.size() + plain[i].prompt.size(), context);
            EXPECT_EQ(expected[i].stop, StopReason::context);
            EXPECT_EQ(found[i].tokens, expected[i].tokens) << "prompt of " << plain[i].prompt.size() << ", draft_len " << speculative[i].draft_len;
            EXPECT_EQ(found[i].stop, StopReason::context);
        }
        EXPECT_EQ(engine->create_sequence({prompt(context), 1, {}, 0, true}).status().code(), Code::capacity);
    }
}

// A slot that filled the whole pool makes room for the next sequence, though no turn comes between.
TEST(Lifecycle, a_full_pool_serves_the_next_sequence) {
    auto engine = make_engine(pair(1, 48));
    ASSERT_TRUE(engine);
    const uint32_t free_pages = engine->target().cache().n_free_pages();
    for (uint32_t draft_len : {0u, 4u, 0u, 4u}) {
        const Answer answer = run_job(*engine, {.prompt = prompt(30), .draft_len = draft_len});
        EXPECT_EQ(answer.tokens.size(), 18u);
    }
    drive(*engine);
    EXPECT_EQ(engine->target().cache().n_free_pages(), free_pages);
}

TEST(Lifecycle, forks_continue_apart_and_share_pages) {
    auto engine = make_engine(pair(8, 160));
    ASSERT_TRUE(engine);
    KvCache& cache = engine->target().cache();
    const uint32_t all_pages = cache.n_free_pages(), all_draft_pages = engine->draft()->cache().n_free_pages();
    for (uint32_t n : {1u, 2u, 16u, 17u, 18u, 33u, 70u})
        for (float temperature : {0.0f, 1.0f}) {
            std::vector<Job> jobs;
            for (uint64_t i = 0; i < 5; ++i)
                jobs.push_back({.prompt = prompt(n), .max_tokens = 40, .draft_len = static_cast<uint32_t>(i % 4), .temperature = temperature, .seed = 5 + i});
            std::vector<Answer> alone;
            for (const Job& job : jobs) alone.push_back(run_job(*engine, job));

            auto source = engine->create_sequence({prompt(n), kHoldTokens, {}, 3, true});
            ASSERT_TRUE(source.ok());
            std::vector<uint64_t> ids;
            for (Job job : jobs) { // asked for before the prompt is read
                job.prompt.clear();
                ids.push_back(engine->fork_sequence(source.value(), job.request()).value());
            }
            drive(*engine, [&] { return find_sequence(*engine, ids.back())->fork_of == 0; });
            const uint32_t rows = n - 1, full = rows / 16;
            // What six copies would take, less the full pages that five of them share. Queued rounds have mapped more.
            EXPECT_EQ(find_sequence(*engine, source.value())->slot->pages[0].size(), (rows + 15) / 16);
            uint32_t mapped = 0;
            for (const auto& [id, sequence] : engine->admission().sequences()) mapped += sequence.slot->pages[0].size();
            EXPECT_EQ(cache.n_free_pages(), all_pages - (mapped - 5 * full)) << "prompt of " << n;
            drive(*engine);
            ASSERT_FALSE(HasFatalFailure());
            for (size_t i = 0; i < ids.size(); ++i)
                EXPECT_EQ(answer_of(*engine, ids[i]).tokens, alone[i].tokens) << "fork " << i << " of a prompt of " << n << ", temperature " << temperature;
            // A fork of a finished fork goes on where that ended.
            Job more = {.prompt = {}, .max_tokens = 10, .draft_len = 2};
            auto again = engine->fork_sequence(ids[1], more.request());
            ASSERT_TRUE(again.ok());
            ids.push_back(again.value());
            drive(*engine);
            more.prompt = prompt(n);
            more.max_tokens = 50;
            if (temperature == 0.0f) {
                const Answer longer = run_job(*engine, more), end = answer_of(*engine, again.value());
                EXPECT_EQ(end.tokens, std::vector<uint32_t>(longer.tokens.end() - 10, longer.tokens.end()));
            }
            ids.push_back(source.value());
            for (uint64_t id : ids) ASSERT_TRUE(destroy_sequence(*engine, id).ok());
            drive(*engine);
            EXPECT_EQ(cache.n_free_pages(), all_pages);
            EXPECT_EQ(engine->draft()->cache().n_free_pages(), all_draft_pages);
        }
}

// Copies have timestamps while somebody listens: else a fork's turn would seem to last until it was seen to be done.
TEST(Lifecycle, a_forks_copies_are_timed_for_a_trace) {
    auto engine = make_engine(pair(2, 160));
    ASSERT_TRUE(engine);
    uint32_t n_turns = 0, n_stages = 0;
    set_trace(*engine, [&](const TraceEvent& event) {
        if (std::string_view(event.name) == "fork") (event.is_stage ? n_stages : n_turns) += 1;
    });
    auto source = engine->create_sequence({prompt(40), kHoldTokens, {}, 0, true});
    ASSERT_TRUE(source.ok());
    Job fork = {.prompt = {}, .max_tokens = 4};
    ASSERT_TRUE(engine->fork_sequence(source.value(), fork.request()).ok());
    drive(*engine);
    EXPECT_EQ(n_turns, 1u);
    EXPECT_EQ(n_stages, engine->device().caps.timestamp_period_ns == 0 ? 0u : 1u);
}

// The source may go before its forks were copied, whether its prompt was read or not.
TEST(Lifecycle, a_fork_outlives_its_source) {
    auto engine = make_engine(pair(4, 160));
    ASSERT_TRUE(engine);
    const uint32_t all_pages = engine->target().cache().n_free_pages();
    const Job job = {.prompt = prompt(80), .max_tokens = 30, .draft_len = 3};
    const Answer expected = run_job(*engine, job);
    for (uint32_t max_tokens : {kHoldTokens, 50u})
        for (int steps : {0, 1, 2}) // before anything ran, in the middle of the prompt, later
            for (bool destroy : {true, false}) {
                auto source = engine->create_sequence({job.prompt, max_tokens, {}, 3, true});
                ASSERT_TRUE(source.ok());
                Job continued = job;
                continued.prompt.clear();
                auto early = engine->fork_sequence(source.value(), continued.request());
                for (int i = 0; i < steps; ++i) ASSERT_TRUE(step(*engine, -1).ok());
                auto late = engine->fork_sequence(source.value(), continued.request());
                const size_t known = find_sequence(*engine, source.value())->tokens.size() - job.prompt.size();
                ASSERT_TRUE(early.ok() && late.ok());
                ASSERT_TRUE((destroy ? destroy_sequence(*engine, source.value()) : cancel_sequence(*engine, source.value())).ok());
                if (destroy) { EXPECT_EQ(find_sequence(*engine, source.value()), nullptr); }
                drive(*engine);
                ASSERT_FALSE(HasFatalFailure()) << (destroy ? "destroyed" : "cancelled") << " after " << steps << " steps, max_tokens " << max_tokens;
                EXPECT_EQ(answer_of(*engine, early.value()).tokens, expected.tokens);
                const auto rest = answer_of(*engine, late.value()).tokens;
                EXPECT_TRUE(std::equal(rest.begin(), rest.end() - static_cast<ptrdiff_t>(known), expected.tokens.begin() + static_cast<ptrdiff_t>(known)));
                for (uint64_t id : {early.value(), late.value()}) ASSERT_TRUE(destroy_sequence(*engine, id).ok());
                if (!destroy) { ASSERT_TRUE(destroy_sequence(*engine, source.value()).ok()); }
                drive(*engine);
                EXPECT_EQ(engine->target().cache().n_free_pages(), all_pages);
            }
}

TEST(Lifecycle, cancel_and_destroy_in_flight) {
    auto engine = make_engine(pair(4, 160));
    ASSERT_TRUE(engine);
    const uint32_t all_pages = engine->target().cache().n_free_pages(), all_draft_pages = engine->draft()->cache().n_free_pages();
    const Job job = {.prompt = prompt(70), .max_tokens = 60, .draft_len = 4};
    const Answer expected = run_job(*engine, job);
    for (int steps = 0; steps < 10; ++steps) {
        auto stays = engine->create_sequence(job.request()), cancelled = engine->create_sequence(job.request()), destroyed = engine->create_sequence(job.request());
        for (int i = 0; i < steps; ++i) {
            ASSERT_TRUE(step(*engine, -1).ok());
            if (i % 2) { ASSERT_TRUE(engine->turns().wait(60'000'000'000).ok()); }
        }
        ASSERT_TRUE(cancel_sequence(*engine, cancelled.value()).ok());
        ASSERT_TRUE(destroy_sequence(*engine, destroyed.value()).ok());
        auto next = engine->create_sequence(job.request()); // takes the slot at once
        ASSERT_TRUE(next.ok());
        drive(*engine);
        ASSERT_FALSE(HasFatalFailure());
        EXPECT_EQ(answer_of(*engine, stays.value()).tokens, expected.tokens);
        EXPECT_EQ(answer_of(*engine, next.value()).tokens, expected.tokens);
        const Answer kept = answer_of(*engine, cancelled.value());
        EXPECT_EQ(kept.stop, StopReason::cancelled);
        EXPECT_TRUE(std::equal(kept.tokens.begin(), kept.tokens.end(), expected.tokens.begin()));
        EXPECT_FALSE(cancel_sequence(*engine, destroyed.value()).ok());
        for (uint64_t id : {stays.value(), cancelled.value(), next.value()}) ASSERT_TRUE(destroy_sequence(*engine, id).ok());
        drive(*engine);
        EXPECT_EQ(engine->target().cache().n_free_pages(), all_pages);
        EXPECT_EQ(engine->draft()->cache().n_free_pages(), all_draft_pages);
    }
}

TEST(Lifecycle, slots_are_a_limit_and_come_back) {
    auto engine = make_engine(pair(3, 64));
    ASSERT_TRUE(engine);
    std::vector<uint64_t> ids;
    for (int i = 0; i < 3; ++i) ids.push_back(engine->create_sequence({prompt(4), 5, {}, 2, true}).value());
    EXPECT_EQ(engine->create_sequence({prompt(4), 5, {}, 2, true}).status().code(), Code::capacity);
    EXPECT_EQ(engine->fork_sequence(ids[0], {{}, 5, {}, 2, true}).status().code(), Code::capacity);
    ASSERT_TRUE(destroy_sequence(*engine, ids[1]).ok());
    EXPECT_TRUE(engine->create_sequence({prompt(4), 5, {}, 2, true}).ok());
    drive(*engine);
    EXPECT_EQ(answer_of(*engine, ids[2]).tokens.size(), 5u);
}

TEST(Lifecycle, draft_len_changes_change_no_greedy_token) {
    auto engine = make_engine(pair(4, 300));
    ASSERT_TRUE(engine);
    const Answer expected = run_job(*engine, {.prompt = prompt(20), .max_tokens = 200});
    auto id = engine->create_sequence({prompt(20), 200, {}, 2, true});
    const LiveSequence* sequence = find_sequence(*engine, id.value());
    uint32_t n = 0;
    drive(*engine, [&] {
        EXPECT_TRUE(set_draft_len(*engine, id.value(), ++n * 5 % 9).ok());
        return sequence->stop != StopReason::none;
    });
    EXPECT_EQ(answer_of(*engine, id.value()).tokens, expected.tokens);
    EXPECT_GT(sequence->stats.draft_n, 0u);
}

} // namespace
} // namespace auspex::lifecycle_test
