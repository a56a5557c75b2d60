// Engines in which sequences wait and lose their slots, and a crowd to which everything happens at random moments.
#pragma once

#include "session/same_answer.h"

#include <array>
#include <random>

namespace auspex::test::crowd {

constexpr uint32_t kVocab = 61, kContext = 160, kPage = 16;

inline EngineDesc engine_with(uint32_t slots, uint32_t max_waiting, uint64_t cache_tokens = 0) {
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
inline EngineDesc with_prompt_kernels(EngineDesc desc) {
    desc.adjust_tuning = [](Tuning& tuning) { tuning.prompt_by_rows = false; };
    return desc;
}
inline Job job_of(uint32_t prompt, uint32_t max_tokens, uint64_t seed, float temperature = 0) {
    return {.prompt = random_prompt(prompt, kVocab, seed), .max_tokens = max_tokens, .draft_len = 3, .temperature = temperature, .seed = seed};
}
inline std::vector<Job> mixed_jobs(uint32_t n) {
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
inline std::vector<Answer> each_alone(const EngineDesc& desc, std::span<const Job> jobs) {
    auto engine = make_engine(desc);
    std::vector<Answer> answers;
    for (const Job& job : jobs) answers.push_back(run_job(*engine, job));
    return answers;
}
inline Scheduler::Position position(Engine& engine, uint64_t id) { return engine.scheduler().position(*find_sequence(engine, id)); }

// What a sequence was doing when it was cancelled.
enum class Doing { waiting, parked, prompt, waiting_for_its_source, rounds };
constexpr size_t kDoings = 5;
inline Doing doing(Engine& engine, uint64_t id) {
    const Phase phase = position(engine, id).phase;
    if (phase == Phase::parked) return Doing::parked;
    if (find_sequence(engine, id)->fork_of != 0) return Doing::waiting_for_its_source;
    return phase == Phase::waiting ? Doing::waiting : phase == Phase::prompt ? Doing::prompt : Doing::rounds;
}

// Whatever happens to them, at whatever moment: nothing is lost, and nobody else's text changes, nor a bit of its log-probabilities.
// Goes on until n_cancels were cancelled, some of them whatever they were doing.
inline void check_random_moments(uint32_t n_moves, uint32_t n_cancels, uint32_t seed) {
    std::vector<Job> jobs = mixed_jobs(16);
    for (Job& job : jobs) job.with_logprobs = true;
    const std::vector<Answer> expected = each_alone(with_prompt_kernels(engine_with(1, 0)), jobs);
    auto engine = make_engine(with_prompt_kernels(engine_with(3, 6, kContext * 3 / 2)));
    std::mt19937 generator(seed);
    const auto random = [&](uint32_t n) { return static_cast<uint32_t>(generator() % n); };
    struct Alive {
        uint64_t id;
        std::optional<size_t> job; // whose text it must say, unless it was cancelled
    };
    std::vector<Alive> alive;
    uint32_t n_checked = 0, n_refused = 0, n_cancelled = 0;
    std::array<uint32_t, kDoings> cancelled = {}; // while doing what
    const auto cancel = [&](Alive& one) {
        if (find_sequence(*engine, one.id)->stop == StopReason::none) {
            cancelled[static_cast<size_t>(doing(*engine, one.id))] += 1;
            n_cancelled += 1;
        }
        one.job.reset();
        ASSERT_TRUE(cancel_sequence(*engine, one.id).ok());
    };
    // How many answers end within so many moves, and what a cancelled one was doing, depends on the machine: it goes on until all were seen.
    const auto has_seen_enough = [&] {
        return n_checked > 10 && n_refused > 10 && n_cancelled >= n_cancels && std::ranges::min(cancelled) > n_cancels / 200;
    };
    for (uint32_t move = 0; (move < n_moves || (!has_seen_enough() && move < 20 * n_moves)) && !testing::Test::HasFatalFailure(); ++move) {
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
            if (what == 7 && random(4) == 0) cancel(one);
            if (what == 8) {
                Job fork = job_of(1, 9, move);
                fork.prompt.clear();
                if (auto made = engine->fork_sequence(one.id, fork.request()); made.ok()) alive.push_back({made.value(), std::nullopt});
            }
            if (what == 9 && sequence->stop != StopReason::none && !one.job) {
                const Status appended = engine->append_sequence(one.id, job_of(4, 6, move).request());
                EXPECT_TRUE(appended.ok() || appended.code() == Code::capacity) << appended.message();
            }
            if (what >= 10 && random(12) == 0) { // whatever it is doing
                ASSERT_TRUE(destroy_sequence(*engine, one.id).ok());
                alive.erase(alive.begin() + (&one - alive.data()));
            }
        }
        std::erase_if(alive, [&](const Alive& one) {
            const LiveSequence* sequence = find_sequence(*engine, one.id);
            if (sequence->stop == StopReason::none || random(20) > 0) return false;
            if (one.job) {
                expect_same(answer_of(*engine, one.id), expected[*one.job], "move " + std::to_string(move));
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
        if (one.job) expect_same(answer_of(*engine, one.id), expected[*one.job], "at the end");
    for (const Alive& one : alive) ASSERT_TRUE(destroy_sequence(*engine, one.id).ok());
    drive(*engine);
    EXPECT_GT(n_checked, 10u);
    EXPECT_GT(n_refused, 10u);
    EXPECT_GE(n_cancelled, n_cancels);
    for (size_t i = 0; i < kDoings; ++i) EXPECT_GT(cancelled[i], n_cancels / 200) << "of those that were doing " << i;
    std::printf("  %u cancelled: %u waiting, %u parked, %u in their prompts, %u before their source was copied, %u in rounds\n", n_cancelled, cancelled[0], cancelled[1], cancelled[2], cancelled[3], cancelled[4]);
    EXPECT_TRUE(engine->admission().sequences().empty());
    EXPECT_EQ(engine->target().cache().n_free_pages(), 15u);
    EXPECT_EQ(engine->draft()->cache().n_free_pages(), 15u);
}

} // namespace auspex::test::crowd
