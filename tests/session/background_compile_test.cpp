// Shaders that are compiled beside decoding: whenever they are there, texts are the plain ones; what fails is said once and left out.
#include "session/prompts.h"

#include <atomic>
#include <mutex>
#include <random>
#include <thread>

namespace auspex::background_compile_test {
namespace {

using namespace test;

constexpr uint32_t kMaxDraft = 4;

// Between the engine and vkCreateComputePipelines, on threads other than the caller's: takes some time, or fails now and then.
struct Compiler {
    static inline PFN_vkCreateComputePipelines real = nullptr;
    static inline std::thread::id callers;
    static inline std::atomic<uint32_t> most_ms = 0, fail_every = 0;     // 0: none
    static inline std::atomic<uint32_t> n_behind = 0, n_in_calls = 0, n_failed = 0; // pipelines asked for

    static VKAPI_ATTR VkResult VKAPI_CALL create(VkDevice device, VkPipelineCache cache, uint32_t count, const VkComputePipelineCreateInfo* infos,
                                                 const VkAllocationCallbacks* callbacks, VkPipeline* pipelines) {
        if (std::this_thread::get_id() == callers) {
            n_in_calls += 1;
            return real(device, cache, count, infos, callbacks, pipelines);
        }
        const uint32_t n = ++n_behind;
        if (most_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(std::mt19937(n)() % most_ms));
        if (fail_every > 0 && n % fail_every == 0) {
            n_failed += 1;
            return VK_ERROR_INITIALIZATION_FAILED;
        }
        return real(device, cache, count, infos, callbacks, pipelines);
    }
    static VkHook hook(uint32_t longest_ms, uint32_t fails_every) {
        callers = std::this_thread::get_id();
        most_ms = longest_ms;
        fail_every = fails_every;
        n_behind = n_in_calls = n_failed = 0;
        return [](VkFunctions& vk) {
            if (!vk.CreateComputePipelines || vk.CreateComputePipelines == create) return;
            real = vk.CreateComputePipelines;
            vk.CreateComputePipelines = create;
        };
    }
};

EngineDesc pair(uint32_t n_slots, uint32_t background_threads) {
    EngineDesc desc = bundled_pair(n_slots, 512);
    desc.max_draft_len = kMaxDraft;
    desc.background_threads = background_threads;
    return desc;
}

Job text(uint32_t n_tokens, uint64_t seed = 1) {
    static const auto once = read_goldens()[0]["ids"].get<std::vector<uint32_t>>();
    return {.prompt = once, .max_tokens = n_tokens, .draft_len = kAutoDraftLen, .seed = seed, .drafter = DrafterChoice::automatic};
}

Job without_drafts(Job job) {
    job.draft_len = 0;
    job.drafter = DrafterChoice::none;
    return job;
}

// Runs the job again and again until it drafts; how often it ran.
int times_until_drafted(Engine& engine, const Job& job, const std::vector<uint32_t>& wanted, int most) {
    for (int n = 1; n <= most; ++n) {
        const Answer answer = run_job(engine, job);
        EXPECT_EQ(answer.tokens, wanted);
        if (answer.stats.draft_n > 0) return n;
    }
    return most + 1;
}

TEST(BackgroundCompile, texts_are_the_plain_ones_whenever_shaders_are_ready) {
    for (const uint32_t most_ms : {3u, 25u}) {
        EngineDesc desc = pair(2, most_ms == 3 ? 3 : 1);
        desc.device.hook = Compiler::hook(most_ms, 0);
        auto engine = make_engine(desc);
        ASSERT_TRUE(engine);
        std::vector<Job> jobs;
        for (const float temperature : {0.0f, 0.7f}) {
            Job job = text(150);
            job.temperature = temperature;
            if (temperature > 0) job.acceptance = AcceptanceRule::coupled;
            jobs.push_back(job);
            job.transforms.top_k = 20;
            jobs.push_back(job);
        }
        std::vector<Job> plain;
        for (const Job& job : jobs) plain.push_back(without_drafts(job));
        const std::vector<Answer> wanted = run_jobs(*engine, plain);
        uint32_t n_drafted = 0;
        for (int i = 0; i < 3 || (n_drafted == 0 && i < 300); ++i) { // a GPU has said all of it before its shaders are there
            const std::vector<Answer> answers = run_jobs(*engine, jobs);
            for (size_t j = 0; j < jobs.size(); ++j) {
                EXPECT_EQ(answers[j].tokens, wanted[j].tokens) << j;
                n_drafted += answers[j].stats.draft_n;
            }
        }
        EXPECT_GT(Compiler::n_behind, 0u);
        EXPECT_GT(n_drafted, 0u) << most_ms;
    }
}

// Sampled by rejection, a number of drafts gives its seed's text again, whatever else is being compiled.
TEST(BackgroundCompile, a_fixed_draft_len_repeats_its_text) {
    Job job = text(60);
    job.draft_len = 2;
    job.drafter = DrafterChoice::model;
    job.temperature = 0.8f;
    auto quiet = make_engine(pair(2, 0));
    ASSERT_TRUE(quiet);
    const std::vector<uint32_t> wanted = run_job(*quiet, job).tokens;
    EngineDesc desc = pair(2, 1);
    desc.device.hook = Compiler::hook(10, 0);
    auto engine = make_engine(desc);
    ASSERT_TRUE(engine);
    for (int i = 0; i < 3; ++i) {
        const std::vector<Answer> answers = run_jobs(*engine, {job, text(80)});
        EXPECT_EQ(answers[0].tokens, wanted);
        EXPECT_EQ(answers[0].stats.draft_n > 0, true);
    }
}

TEST(BackgroundCompile, what_cannot_be_compiled_is_said_once_and_left_out) {
    auto quiet = make_engine(pair(1, 0));
    ASSERT_TRUE(quiet);
    const std::vector<uint32_t> wanted = run_job(*quiet, without_drafts(text(200))).tokens;
    for (const uint32_t every : {1u, 3u}) {
        EngineDesc desc = pair(1, 1);
        desc.device.hook = Compiler::hook(0, every);
        std::vector<std::string> warnings;
        auto made = Engine::create(desc, Logger{[&](LogLevel level, std::string_view line) {
            if (level >= LogLevel::warning) warnings.emplace_back(line);
        }});
        ASSERT_TRUE(made.ok());
        Engine& engine = *made.value();
        EXPECT_EQ(run_job(engine, text(200)).tokens, wanted);
        const uint32_t in_calls = Compiler::n_in_calls;
        for (int i = 0; i < 4; ++i) {
            const Answer answer = run_job(engine, text(200));
            EXPECT_EQ(answer.tokens, wanted);
            if (every == 1) { EXPECT_EQ(answer.stats.draft_n, 0u); }
        }
        EXPECT_GT(Compiler::n_failed, 0u);
        EXPECT_EQ(Compiler::n_in_calls, in_calls) << "a round was chosen that was not ready";
        EXPECT_EQ(warnings.size(), Compiler::n_failed) << "each once";
        for (const std::string& line : warnings) EXPECT_NE(line.find("vkCreateComputePipelines answered VK_ERROR_INITIALIZATION_FAILED for kernel "), std::string::npos) << line;
        Job job = text(40); // what is asked for by number is tried again
        job.draft_len = 2;
        job.drafter = DrafterChoice::model;
        EXPECT_GT(run_job(engine, job).stats.draft_n, 0u);
        EXPECT_GT(Compiler::n_in_calls, in_calls);
    }
}

TEST(BackgroundCompile, without_threads_drafts_wait_until_their_shaders_are_there) {
    auto engine = make_engine(pair(1, 0));
    ASSERT_TRUE(engine);
    const std::vector<uint32_t> wanted = run_job(*engine, without_drafts(text(150))).tokens;
    EXPECT_EQ(times_until_drafted(*engine, text(150), wanted, 3), 4);
    auto id = engine->create_sequence(text(60).request());
    ASSERT_TRUE(id.ok());
    drive(*engine);
    const std::string why = engine->planner().report(*find_sequence(*engine, id.value())).choice;
    EXPECT_NE(why.find("not compiled"), std::string::npos) << why;
    ASSERT_TRUE(destroy_sequence(*engine, id.value()).ok());
    ASSERT_TRUE(engine->prepare(text(1).request()).ok());
    EXPECT_EQ(times_until_drafted(*engine, text(150), wanted, 3), 1);
}

// Nothing waits for what was asked for and had not begun.
TEST(BackgroundCompile, an_engine_may_end_while_its_shaders_are_compiled) {
    for (int i = 0; i < 5; ++i) {
        EngineDesc desc = pair(1, 1 + i % 2);
        desc.device.hook = Compiler::hook(60, 0);
        auto engine = make_engine(desc);
        ASSERT_TRUE(engine);
        auto id = engine->create_sequence(text(200).request());
        ASSERT_TRUE(id.ok());
        drive(*engine, [&] { return Compiler::n_behind > 0 || find_sequence(*engine, id.value())->stop != StopReason::none; });
        const uint32_t begun = Compiler::n_behind;
        engine.reset();
        EXPECT_LE(Compiler::n_behind, begun + desc.background_threads);
    }
}

// Engines are independent, each on a thread of its own.
TEST(BackgroundCompile, two_engines_on_two_threads) {
    std::vector<uint32_t> tokens[2];
    const auto decode = [&](int which) {
        auto made = Engine::create(pair(1, 1), Logger{});
        if (!made.ok()) return;
        Engine& engine = *made.value();
        for (int i = 0; i < 2; ++i) {
            auto id = engine.create_sequence(text(80).request());
            if (!id.ok()) return;
            for (;;) {
                auto stepped = step(engine, -1);
                if (!stepped.ok()) return;
                if (!stepped.value().pending) break;
                if (!engine.turns().wait(60'000'000'000).ok()) return;
            }
            tokens[which] = find_sequence(engine, id.value())->tokens;
            if (!destroy_sequence(engine, id.value()).ok()) return;
        }
    };
    std::thread other([&] { decode(1); });
    decode(0);
    other.join();
    EXPECT_GT(tokens[0].size(), 80u);
    EXPECT_EQ(tokens[0], tokens[1]);
}

} // namespace
} // namespace auspex::background_compile_test
