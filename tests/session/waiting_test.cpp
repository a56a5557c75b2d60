// Sequences that wait, are let in, lose their slots and come back: each says what it says alone.
#include "session/waiting_crowd.h"

#include <map>

namespace auspex::waiting_test {
namespace {

using namespace test;
using namespace test::crowd;

TEST(WaitingRoom, ten_seconds_count_as_one_priority) {
    WaitingRoom room;
    constexpr uint64_t kSecond = 1'000'000'000;
    room.enter(1, 0, 100 * kSecond);
    room.enter(2, 0, 101 * kSecond);
    room.enter(3, -1, 105 * kSecond); // as if it had come at 95
    room.enter(4, 1, 90 * kSecond);   // at 100: its id is larger
    room.enter(5, 10, 0);             // waited long
    std::vector<uint64_t> order;
    for (const auto& [key, id] : room.order()) order.push_back(id);
    EXPECT_EQ(order, (std::vector<uint64_t>{3, 1, 4, 5, 2}));
    EXPECT_EQ(room.place(4, 1, 90 * kSecond), 2u);
    room.leave(1, 0, 100 * kSecond);
    EXPECT_EQ(room.place(4, 1, 90 * kSecond), 1u);
    EXPECT_EQ(room.size(), 4u);
}

TEST(Waiting, as_many_wait_as_may_and_each_says_what_it_says_alone) {
    const std::vector<Job> jobs = mixed_jobs(12);
    const std::vector<Answer> expected = each_alone(engine_with(1, 0), jobs);
    auto engine = make_engine(engine_with(2, 10));
    std::vector<uint64_t> ids;
    for (const Job& job : jobs) ids.push_back(engine->create_sequence(job.request()).value());
    EXPECT_EQ(position(*engine, ids[0]).phase, Phase::running) << "a prompt of one token is read by its first round";
    EXPECT_EQ(position(*engine, ids[1]).phase, Phase::prompt);
    for (uint32_t i = 2; i < 12; ++i) {
        EXPECT_EQ(position(*engine, ids[i]).phase, Phase::waiting);
        EXPECT_EQ(position(*engine, ids[i]).place, i - 2);
    }
    const auto more = engine->create_sequence(jobs[0].request());
    ASSERT_FALSE(more.ok());
    EXPECT_EQ(more.status().code(), Code::capacity);
    EXPECT_NE(more.status().message().find("10 sequences wait already"), std::string::npos) << more.status().message();
    EXPECT_EQ(engine->scheduler().load().n_waiting, 10u);
    drive(*engine);
    for (size_t i = 0; i < jobs.size(); ++i) EXPECT_EQ(answer_of(*engine, ids[i]).tokens, expected[i].tokens) << i;
    EXPECT_EQ(engine->scheduler().load().n_waiting, 0u);
    EXPECT_EQ(position(*engine, ids[0]).phase, Phase::finished);
    for (uint64_t id : ids) ASSERT_TRUE(destroy_sequence(*engine, id).ok());
    drive(*engine);
    EXPECT_EQ(engine->target().cache().n_free_pages(), engine->target().cache().shape().n_pages);
    EXPECT_EQ(engine->draft()->cache().n_free_pages(), engine->draft()->cache().shape().n_pages);
}

// Slots that came free since the last step count, too.
TEST(Waiting, who_comes_after_others_went_is_not_refused_for_them) {
    auto engine = make_engine(engine_with(2, 2));
    std::vector<uint64_t> ids;
    for (uint64_t i = 0; i < 4; ++i) ids.push_back(engine->create_sequence(job_of(5, 4, i).request()).value());
    EXPECT_EQ(engine->create_sequence(job_of(5, 4, 9).request()).status().code(), Code::capacity);
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(destroy_sequence(*engine, ids[i]).ok());
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(engine->create_sequence(job_of(5, 4, 9).request()).ok());
    EXPECT_EQ(engine->create_sequence(job_of(5, 4, 9).request()).status().code(), Code::capacity);
    drive(*engine);
}

TEST(Waiting, the_urgent_go_first) {
    auto engine = make_engine(engine_with(1, 8));
    const uint64_t running = engine->create_sequence(job_of(5, 4, 1).request()).value();
    std::map<int32_t, uint64_t> by_priority;
    for (int32_t priority : {2, 0, -2, 1}) {
        SequenceRequest request = job_of(5, 4, 7).request();
        request.priority = priority;
        by_priority[priority] = engine->create_sequence(request).value();
    }
    uint32_t place = 0;
    for (const auto& [priority, id] : by_priority) EXPECT_EQ(position(*engine, id).place, place++) << priority;
    std::vector<int32_t> ended;
    drive(*engine, [&] {
        for (const auto& [priority, id] : by_priority)
            if (find_sequence(*engine, id)->stop != StopReason::none && std::find(ended.begin(), ended.end(), priority) == ended.end()) ended.push_back(priority);
        return ended.size() == 4;
    });
    EXPECT_EQ(ended, (std::vector<int32_t>{-2, 0, 1, 2}));
    ASSERT_TRUE(destroy_sequence(*engine, running).ok());
}

TEST(Waiting, forks_wait_for_slots_and_for_sources_that_wait) {
    const Job job = job_of(40, 12, 3, 0.8f);
    const std::vector<Answer> expected = each_alone(engine_with(1, 0), std::span(&job, 1));
    auto engine = make_engine(engine_with(1, 8));
    const uint64_t running = engine->create_sequence(job_of(5, 4, 1).request()).value();
    const uint64_t source = engine->create_sequence({job.prompt, kHoldTokens, {}, 0, true}).value(); // waits
    Job fork = job;
    fork.prompt.clear();
    std::vector<uint64_t> forks;
    for (int i = 0; i < 3; ++i) forks.push_back(engine->fork_sequence(source, fork.request()).value());
    drive(*engine);
    for (uint64_t id : forks) EXPECT_EQ(answer_of(*engine, id).tokens, expected[0].tokens);
    EXPECT_EQ(find_sequence(*engine, running)->n_generated(), 4u);
}

// A source that was destroyed stays until its forks are copied, and goes when the last of them is not to be copied any more.
TEST(Waiting, a_destroyed_source_goes_with_its_last_fork) {
    for (const char* end : {"destroyed", "cancelled", "parked"}) {
        for (const uint32_t n_slots : {1u, 3u}) { // the forks wait, or have slots
            SCOPED_TRACE(std::string(end) + ", " + std::to_string(n_slots) + " slots");
            auto engine = make_engine(engine_with(n_slots, 4));
            const uint32_t n_pages = engine->target().cache().n_free_pages();
            Job job = job_of(40, 8, 3);
            const uint64_t source = engine->create_sequence(job.request()).value();
            job.prompt.clear();
            const uint64_t forks[] = {engine->fork_sequence(source, job.request()).value(), engine->fork_sequence(source, job.request()).value()};
            ASSERT_TRUE(destroy_sequence(*engine, source).ok());
            EXPECT_EQ(engine->admission().sequences().size(), 3u);
            for (const uint64_t fork : forks) {
                if (end[0] == 'c') {
                    ASSERT_TRUE(cancel_sequence(*engine, fork).ok());
                }
                if (end[0] == 'p') {
                    ASSERT_TRUE(engine->admission().park(fork).ok());
                }
                if (end[0] == 'd') {
                    ASSERT_TRUE(destroy_sequence(*engine, fork).ok());
                }
            }
            drive(*engine);
            for (const uint64_t fork : forks)
                if (end[0] != 'd') {
                    ASSERT_TRUE(destroy_sequence(*engine, fork).ok());
                }
            drive(*engine);
            EXPECT_TRUE(engine->admission().sequences().empty());
            EXPECT_EQ(engine->target().cache().n_free_pages(), n_pages);
        }
    }
}

// A parked sequence goes on as if nothing had been, whoever drafts, at whichever round, with prompts' kernels of their own, too.
TEST(Parking, changes_no_text) {
    uint32_t n_with_proposals = 0; // that the text depends on
    for (const bool prompt_kernels : {false, true}) {
        const EngineDesc desc = prompt_kernels ? with_prompt_kernels(engine_with(2, 4)) : engine_with(2, 4);
        std::vector<Job> jobs;
        for (const DrafterChoice drafter : {DrafterChoice::model, DrafterChoice::ngram, DrafterChoice::lookup, DrafterChoice::hybrid, DrafterChoice::none})
            for (const float temperature : {0.0f, 0.6f}) {
                Job job = job_of(37, 40, 5 + jobs.size(), temperature);
                job.drafter = drafter;
                if (jobs.size() % 4 == 1) job.transforms.frequency_penalty = 0.3f;
                if (drafter != DrafterChoice::model && drafter != DrafterChoice::none) { // few words, so that the text repeats itself
                    job.temperature *= 3;
                        for (uint32_t token = 2; token < kVocab; ++token) job.transforms.biases.push_back({token, -INFINITY});
                }
                job.with_logprobs = true;
                jobs.push_back(job);
            }
        const std::vector<Answer> expected = each_alone(desc, jobs);
        for (size_t i = 0; i + 2 < jobs.size(); ++i) EXPECT_GT(expected[i].stats.draft_n, 10u) << i;
        auto engine = make_engine(desc);
        for (size_t i = 0; i < jobs.size(); ++i) {
            const bool is_searched = jobs[i].drafter != DrafterChoice::model && jobs[i].drafter != DrafterChoice::none;
            for (const uint32_t at_round : is_searched ? std::vector<uint32_t>{1, 2, 7, 9, 11} : std::vector<uint32_t>{1, 2, 7}) {
                SCOPED_TRACE("job " + std::to_string(i) + ", parked at round " + std::to_string(at_round));
                const uint64_t id = engine->create_sequence(jobs[i].request()).value(), other = engine->create_sequence(jobs[(i + 1) % jobs.size()].request()).value();
                drive(*engine, [&] { return find_sequence(*engine, id)->stats.rounds >= at_round; });
                n_with_proposals += find_sequence(*engine, id)->proposed.empty() || jobs[i].temperature == 0 ? 0 : 1;
                ASSERT_TRUE(engine->admission().park(id).ok());
                EXPECT_EQ(position(*engine, id).phase, Phase::parked);
                drive(*engine);
                EXPECT_EQ(find_sequence(*engine, id)->stop, StopReason::none);
                ASSERT_TRUE(engine->admission().resume(id).ok());
                drive(*engine);
                expect_same(answer_of(*engine, id), expected[i], "parked");
                EXPECT_EQ(find_sequence(*engine, id)->n_parked, 1u);
                EXPECT_EQ(answer_of(*engine, other).tokens, expected[(i + 1) % jobs.size()].tokens);
                ASSERT_TRUE(destroy_sequence(*engine, id).ok() && destroy_sequence(*engine, other).ok());
            }
        }
    }
    EXPECT_GE(n_with_proposals, 8u);
}

// Pages of one and a half contexts for eight sequences: all are let in, lose their pages to each other, come back, and end.
TEST(Parking, few_pages_change_no_text) {
    std::vector<Job> jobs;
    for (uint32_t i = 0; i < 8; ++i) {
        Job job = job_of(10 + 3 * i, 0, i + 1, i % 2 == 0 ? 0.0f : 0.8f); // until the context is full
        job.drafter = i % 3 == 2 ? DrafterChoice::ngram : DrafterChoice::model;
        if (i == 4) job.draft_len = kAutoDraftLen;
        job.with_logprobs = true;
        jobs.push_back(job);
    }
    for (const bool prompt_kernels : {false, true}) {
        const EngineDesc roomy = prompt_kernels ? with_prompt_kernels(engine_with(8, 0)) : engine_with(8, 0);
        EngineDesc tight = roomy;
        tight.cache_tokens = kContext * 3 / 2;
        const std::vector<Answer> expected = each_alone(roomy, jobs);
        auto engine = make_engine(tight);
        std::vector<uint64_t> ids;
        tight.max_waiting = 8;
        engine = make_engine(tight);
        for (const Job& job : jobs) ids.push_back(engine->create_sequence(job.request()).value());
        struct Seen {
            bool is_out = false;
            uint32_t n_parked = 0, n_ended = 0; // by then
            uint32_t n_ended_before = 0;        // others, when it ended itself
        };
        std::vector<Seen> seen(ids.size());
        drive(*engine, [&] {
            const auto n_ended = static_cast<uint32_t>(std::count_if(ids.begin(), ids.end(), [&](uint64_t id) { return find_sequence(*engine, id)->stop != StopReason::none; }));
            for (size_t i = 0; i < ids.size(); ++i) {
                const LiveSequence& sequence = *find_sequence(*engine, ids[i]);
                if (sequence.n_parked > seen[i].n_parked) seen[i].n_ended = n_ended;
                if (seen[i].is_out && sequence.slot) {
                    EXPECT_GT(n_ended, seen[i].n_ended) << i << " came back before somebody had ended";
                }
                if (sequence.stop == StopReason::none) seen[i].n_ended_before = n_ended;
                seen[i].n_parked = sequence.n_parked;
                seen[i].is_out = !sequence.slot && sequence.n_parked > 0;
            }
            return false;
        });
        uint32_t n_parked = 0;
        for (size_t i = 0; i < jobs.size(); ++i) {
            expect_same(answer_of(*engine, ids[i]), expected[i], std::to_string(i));
            EXPECT_LE(find_sequence(*engine, ids[i])->n_parked, seen[i].n_ended_before + 1) << i << " was parked again though nobody had made room for it";
            n_parked += find_sequence(*engine, ids[i])->n_parked;
        }
        EXPECT_GT(n_parked, 3u);
        for (uint64_t id : ids) ASSERT_TRUE(destroy_sequence(*engine, id).ok());
        drive(*engine);
        EXPECT_EQ(engine->target().cache().n_free_pages(), 15u);
        EXPECT_EQ(engine->draft()->cache().n_free_pages(), 15u);
    }
}

// Slots of conversations that wait for their next words go to who needs them; the conversations go on all the same.
TEST(Parking, whoever_is_over_makes_room_and_goes_on_later) {
    const std::vector<Job> jobs = mixed_jobs(6);
    const Job more = job_of(9, 10, 77, 0.8f);
    std::vector<std::vector<uint32_t>> expected;
    {
        auto engine = make_engine(engine_with(6, 0));
        std::vector<uint64_t> ids;
        for (const Job& job : jobs) ids.push_back(engine->create_sequence(job.request()).value());
        drive(*engine);
        for (uint64_t id : ids) ASSERT_TRUE(engine->append_sequence(id, more.request()).ok());
        drive(*engine);
        for (uint64_t id : ids) expected.push_back(find_sequence(*engine, id)->tokens);
    }
    auto engine = make_engine(engine_with(2, 6));
    std::vector<uint64_t> ids;
    for (const Job& job : jobs) ids.push_back(engine->create_sequence(job.request()).value());
    drive(*engine);
    for (uint64_t id : ids) ASSERT_TRUE(engine->append_sequence(id, more.request()).ok());
    drive(*engine);
    for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(find_sequence(*engine, ids[i])->tokens, expected[i]) << i;
}

TEST(Waiting, random_moments) { check_random_moments(3000, 100, 7); }

} // namespace
} // namespace auspex::waiting_test
