// Sequences that wait, are let in, lose their slots and come back: each says what it says alone.
#include "session/engine_fixture.h"
#include "session/turns/turn_order.h"

#include <map>
#include <random>

namespace auspex {
namespace {

using namespace test;

constexpr uint32_t kVocab = 61, kContext = 160, kPage = 16;

EngineDesc engine_with(uint32_t slots, uint32_t max_waiting, uint64_t cache_tokens = 0) {
    const Shape shape = {.vocab = kVocab, .scale = 0.2f};
    EngineDesc desc;
    desc.target_synthetic = random_model(shape, 1);
    desc.draft_synthetic = random_model(shape, 2);
    desc.max_sequences = slots;
    desc.max_context = kContext;
    desc.max_draft_len = 4;
    desc.max_waiting = max_waiting;
    desc.cache_tokens = cache_tokens;
    return desc;
}
// On CPUs rows of prompts and of answers share their kernels, and a mistake would not show.
EngineDesc with_prompt_kernels(EngineDesc desc) {
    desc.adjust_tuning = [](Tuning& tuning) { tuning.prompt_by_rows = false; };
    return desc;
}
Job job_of(uint32_t prompt, uint32_t max_tokens, uint64_t seed, float temperature = 0) {
    return {.prompt = random_prompt(prompt, kVocab, seed), .max_tokens = max_tokens, .draft_len = 3, .temperature = temperature, .seed = seed};
}
std::vector<Job> mixed_jobs(uint32_t n) {
    std::vector<Job> jobs;
    for (uint32_t i = 0; i < n; ++i) {
        Job job = job_of(1 + i * 29 % 70, 5 + i * 11 % 40, i + 1, i % 3 == 0 ? 0.0f : 0.8f);
        job.draft_len = i % 5;
        if (i % 3 == 2) job.acceptance = AcceptanceRule::coupled;
        if (i % 4 == 1) job.drafter = DrafterChoice::ngram;
        if (i % 4 == 3) job.drafter = DrafterChoice::hybrid;
        jobs.push_back(job);
    }
    return jobs;
}
std::vector<Answer> each_alone(const EngineDesc& desc, std::span<const Job> jobs) {
    auto engine = make_engine(desc);
    std::vector<Answer> answers;
    for (const Job& job : jobs) answers.push_back(run_job(*engine, job));
    return answers;
}
Scheduler::Position position(Engine& engine, uint64_t id) { return engine.scheduler().position(*find_sequence(engine, id)); }

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

// A parked sequence goes on as if nothing had been, whoever drafts, at whichever round, with prompts' kernels of their own, too.
TEST(Parking, changes_no_text) {
    for (const bool prompt_kernels : {false, true}) {
        const EngineDesc desc = prompt_kernels ? with_prompt_kernels(engine_with(2, 4)) : engine_with(2, 4);
        std::vector<Job> jobs;
        for (const DrafterChoice drafter : {DrafterChoice::model, DrafterChoice::ngram, DrafterChoice::lookup, DrafterChoice::hybrid, DrafterChoice::none})
            for (const float temperature : {0.0f, 0.6f}) {
                Job job = job_of(37, 40, 5 + jobs.size(), temperature);
                job.drafter = drafter;
                if (jobs.size() % 4 == 1) job.transforms.frequency_penalty = 0.3f;
                jobs.push_back(job);
            }
        const std::vector<Answer> expected = each_alone(desc, jobs);
        auto engine = make_engine(desc);
        for (size_t i = 0; i < jobs.size(); ++i) {
            for (const uint32_t at_round : {1u, 2u, 7u}) {
                SCOPED_TRACE("job " + std::to_string(i) + ", parked at round " + std::to_string(at_round));
                const uint64_t id = engine->create_sequence(jobs[i].request()).value(), other = engine->create_sequence(jobs[(i + 1) % jobs.size()].request()).value();
                drive(*engine, [&] { return find_sequence(*engine, id)->stats.rounds >= at_round; });
                ASSERT_TRUE(engine->admission().park(id).ok());
                EXPECT_EQ(position(*engine, id).phase, Phase::parked);
                drive(*engine);
                EXPECT_EQ(find_sequence(*engine, id)->stop, StopReason::none);
                ASSERT_TRUE(engine->admission().resume(id).ok());
                drive(*engine);
                EXPECT_EQ(answer_of(*engine, id).tokens, expected[i].tokens);
                EXPECT_EQ(find_sequence(*engine, id)->n_parked, 1u);
                EXPECT_EQ(answer_of(*engine, other).tokens, expected[(i + 1) % jobs.size()].tokens);
                ASSERT_TRUE(destroy_sequence(*engine, id).ok() && destroy_sequence(*engine, other).ok());
            }
        }
    }
}

// Pages of one and a half contexts for eight sequences: all are let in, lose their pages to each other, come back, and end.
TEST(Parking, few_pages_change_no_text) {
    std::vector<Job> jobs;
    for (uint32_t i = 0; i < 8; ++i) {
        Job job = job_of(10 + 3 * i, 0, i + 1, i % 2 == 0 ? 0.0f : 0.8f); // until the context is full
        job.drafter = i % 3 == 2 ? DrafterChoice::ngram : DrafterChoice::model;
        if (i == 4) job.draft_len = kAutoDraftLen;
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
        drive(*engine);
        uint32_t n_parked = 0;
        for (size_t i = 0; i < jobs.size(); ++i) {
            EXPECT_EQ(answer_of(*engine, ids[i]).tokens, expected[i].tokens) << i;
            EXPECT_LE(find_sequence(*engine, ids[i])->n_parked, 3u) << i;
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

// Whatever happens to them, at whatever moment: nothing is lost, and nobody else's text changes.
TEST(Waiting, random_moments) {
    const std::vector<Job> jobs = mixed_jobs(16);
    const std::vector<Answer> expected = each_alone(engine_with(1, 0), jobs);
    auto engine = make_engine(engine_with(3, 6, kContext * 3 / 2));
    std::mt19937 generator(7);
    const auto random = [&](uint32_t n) { return static_cast<uint32_t>(generator() % n); };
    struct Alive {
        uint64_t id;
        std::optional<size_t> job; // whose text it must say, unless it was cancelled
    };
    std::vector<Alive> alive;
    uint32_t n_checked = 0, n_refused = 0;
    for (uint32_t move = 0; move < 3000 && !testing::Test::HasFatalFailure(); ++move) {
        const uint32_t what = random(12);
        if (what < 4 && alive.size() < 12) {
            const size_t job = random(static_cast<uint32_t>(jobs.size()));
            SequenceRequest request = jobs[job].request();
            request.priority = static_cast<int32_t>(random(5)) - 2;
            auto made = engine->create_sequence(request);
            if (made.ok()) alive.push_back({made.value(), job});
            else ++n_refused;
        } else if (!alive.empty()) {
            Alive& one = alive[random(static_cast<uint32_t>(alive.size()))];
            const LiveSequence* sequence = find_sequence(*engine, one.id);
            if (what == 4) {
                ASSERT_TRUE(engine->admission().park(one.id).ok());
            }
            if (what == 5 || what == 6) {
                ASSERT_TRUE(engine->admission().resume(one.id).ok());
            }
            if (what == 7 && sequence->stop == StopReason::none && random(8) == 0) {
                ASSERT_TRUE(cancel_sequence(*engine, one.id).ok());
                one.job.reset();
            }
            if (what == 8) {
                Job fork = job_of(1, 9, move);
                fork.prompt.clear();
                if (auto made = engine->fork_sequence(one.id, fork.request()); made.ok()) alive.push_back({made.value(), std::nullopt});
            }
            if (what == 9 && sequence->stop != StopReason::none && !one.job) {
                const Status appended = engine->append_sequence(one.id, job_of(4, 6, move).request());
                EXPECT_TRUE(appended.ok() || appended.code() == Code::capacity) << appended.message();
            }
            if (what == 10 && random(4) == 0) one.job.reset(), static_cast<void>(cancel_sequence(*engine, one.id));
            if (what == 11 && random(6) == 0) { // whatever it is doing
                ASSERT_TRUE(destroy_sequence(*engine, one.id).ok());
                alive.erase(alive.begin() + (&one - alive.data()));
            }
        }
        std::erase_if(alive, [&](const Alive& one) {
            const LiveSequence* sequence = find_sequence(*engine, one.id);
            if (sequence->stop == StopReason::none || random(20) > 0) return false;
            if (one.job) {
                EXPECT_EQ(answer_of(*engine, one.id).tokens, expected[*one.job].tokens) << "move " << move;
                ++n_checked;
            }
            EXPECT_TRUE(destroy_sequence(*engine, one.id).ok());
            return true;
        });
        if (random(2) > 0) continue;
        auto stepped = step(*engine, random(4) == 0 ? 0.5 : -1);
        ASSERT_TRUE(stepped.ok()) << stepped.status().message();
        if (random(2) == 0) {
            ASSERT_TRUE(engine->turns().wait(300'000'000'000).ok());
        }
    }
    for (const Alive& one : alive) ASSERT_TRUE(engine->admission().resume(one.id).ok());
    drive(*engine);
    for (const Alive& one : alive)
        if (one.job) {
            EXPECT_EQ(answer_of(*engine, one.id).tokens, expected[*one.job].tokens);
        }
    for (const Alive& one : alive) ASSERT_TRUE(destroy_sequence(*engine, one.id).ok());
    drive(*engine);
    EXPECT_GT(n_checked, 10u);
    EXPECT_GT(n_refused, 10u);
    EXPECT_TRUE(engine->admission().sequences().empty());
    EXPECT_EQ(engine->target().cache().n_free_pages(), 15u);
    EXPECT_EQ(engine->draft()->cache().n_free_pages(), 15u);
}

} // namespace
} // namespace auspex
