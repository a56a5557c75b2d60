// What tests of the whole engine share: engines from a few words, and jobs run to their end through however many slots
// there are.
#pragma once

#include "kept_devices.h"
#include "order/reordered.h"
#include "profiles/device_profile.h"
#include "session/engine.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace auspex::test {

inline Logger warnings_to_stderr() {
    return {[](LogLevel level, std::string_view text) {
        if (level >= LogLevel::warning) std::fprintf(stderr, "%.*s\n", int(text.size()), text.data());
    }};
}

// On the device that tests run on.
inline EngineDesc on_test_device(EngineDesc desc) {
    keep_driver_loaded();
    if (process_is_reordered()) desc.device.hook = reordering(desc.device.hook);
    if (const DeviceProfile* profile = profile_of_process()) {
        desc.device.hook = under(*profile, desc.device.hook);
        desc.adjust_tuning = [then = desc.adjust_tuning](Tuning& tuning) {
            tuning = runnable(tuning);
            if (then) then(tuning);
        };
    }
    desc.device.hook = keeping_devices(desc.device.hook);
    return desc;
}

inline std::unique_ptr<Engine> make_engine(const EngineDesc& desc) {
    auto made = Engine::create(on_test_device(desc), warnings_to_stderr());
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.ok() ? std::move(made).value() : nullptr;
}

// What tests ask of a running engine, whoever in it answers.
inline LiveSequence* find_sequence(Engine& engine, uint64_t id) { return engine.admission().find(id); } // null: unknown or destroyed
inline Status destroy_sequence(Engine& engine, uint64_t id) { return engine.admission().destroy(id); }
inline Status cancel_sequence(Engine& engine, uint64_t id) { return engine.admission().cancel(id); }
inline Status set_draft_len(Engine& engine, uint64_t id, uint32_t draft_len) { return engine.admission().set_draft_len(id, draft_len); }
inline Result<Scheduler::StepResult> step(Engine& engine, double budget_ms) { return engine.scheduler().step(budget_ms); }
inline Status drain(Engine& engine) { return engine.scheduler().drain(); }
inline RoundTimes take_round_times(Engine& engine, uint32_t draft_len) { return engine.outcomes().take_round_times(draft_len); }
inline void set_trace(Engine& engine, TraceSink sink) { engine.scheduler().set_trace(std::move(sink)); }

inline EngineDesc bundled_pair(uint32_t max_sequences, uint32_t max_context) {
    EngineDesc desc;
    desc.target_path = std::string(AUSPEX_PAIR_DIR) + "/target";
    desc.draft_path = std::string(AUSPEX_PAIR_DIR) + "/draft";
    desc.max_sequences = max_sequences;
    desc.max_context = max_context;
    return desc;
}

// A random model. The scale sets how peaked its distributions are: logits have a spread of about scale · sqrt(d).
struct Shape {
    uint32_t d = 64, layers = 2, heads = 2, kv_heads = 1, head_dim = 32, ffn = 96, vocab = 97;
    bool tied = false;
    DType dtype = DType::f32;
    float scale = 0.25f;
};
inline SyntheticModel random_model(const Shape& shape, uint64_t seed, uint32_t max_position = 512) {
    SyntheticModel model;
    LlamaConfig& c = model.config;
    c.hidden_size = shape.d;
    c.n_layers = shape.layers;
    c.n_heads = shape.heads;
    c.n_kv_heads = shape.kv_heads;
    c.head_dim = shape.head_dim;
    c.ffn_size = shape.ffn;
    c.vocab_size = shape.vocab;
    c.max_position = max_position;
    c.tied_embedding = shape.tied;
    model.dtype = shape.dtype;
    model.seed = seed;
    model.scale = shape.scale;
    return model;
}

// Prompt ids from a seed: the same on every platform.
inline std::vector<uint32_t> random_prompt(uint32_t n, uint32_t vocab, uint64_t seed) {
    std::vector<uint32_t> ids;
    uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
    for (uint32_t i = 0; i < n; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        ids.push_back(static_cast<uint32_t>((state >> 33) % vocab));
    }
    return ids;
}

struct Job {
    std::vector<uint32_t> prompt = {};
    uint32_t max_tokens = 0;
    uint32_t draft_len = 0;
    float temperature = 0;
    uint64_t seed = 1;
    bool ignore_eos = true;
    SamplingParams transforms = {}; // its temperature and seed do not count
    DrafterChoice drafter = DrafterChoice::model;
    HostDrafter host_drafter = {};
    AcceptanceRule acceptance = AcceptanceRule::rejection;
    uint32_t ngram_max = 4;
    bool with_logprobs = false;
    uint32_t n_logprobs = 0;
    std::vector<std::string> stop_texts = {};

    SequenceRequest request() const {
        SamplingParams sampling = transforms;
        sampling.temperature = temperature;
        sampling.seed = seed;
        if (acceptance != AcceptanceRule::rejection) sampling.acceptance = acceptance;
        return {prompt, max_tokens, sampling, draft_len, ignore_eos, drafter, ngram_max, host_drafter, stop_texts, 0, with_logprobs ? 1u : 0u, n_logprobs};
    }
};

struct Answer {
    std::vector<uint32_t> tokens; // generated
    std::vector<TokenOrigin> origins;
    std::vector<TokenLogprobs> logprobs;
    StopReason stop = StopReason::none;
    SequenceStats stats;
    uint32_t n_of(TokenOrigin origin) const {
        return static_cast<uint32_t>(std::count(origins.begin(), origins.end(), origin));
    }
};

// Steps and waits until nothing is active, or `until` says so. A turn that takes five minutes is a hang:
// one that meets a driver's compiler for the first time on a busy machine takes one.
inline void drive(Engine& engine, const std::function<bool()>& until = {}, double budget_ms = -1) {
    for (uint32_t idle = 0; idle < 3;) {
        auto stepped = step(engine, budget_ms);
        ASSERT_TRUE(stepped.ok()) << stepped.status().message();
        if (until && until()) return;
        if (!stepped.value().pending) return;
        // Pending, but nothing was submitted and nothing is in flight: it would stay so.
        idle = engine.turns().idle() ? idle + 1 : 0;
        auto waited = engine.turns().wait(300'000'000'000);
        ASSERT_TRUE(waited.ok() && waited.value()) << "a turn did not end";
    }
    FAIL() << "sequences are unfinished, but the scheduler starts nothing";
}

inline Answer answer_of(Engine& engine, uint64_t id) {
    Answer answer;
    const LiveSequence* sequence = find_sequence(engine, id);
    EXPECT_TRUE(sequence);
    if (!sequence) return answer;
    for (const OutputToken& token : sequence->output) {
        answer.tokens.push_back(token.id);
        answer.origins.push_back(token.origin);
    }
    answer.logprobs.assign(sequence->logprobs.begin(), sequence->logprobs.end());
    answer.stop = sequence->stop;
    answer.stats = sequence->stats;
    EXPECT_TRUE(std::equal(answer.tokens.begin(), answer.tokens.end(), sequence->tokens.begin() + sequence->prompt_n,
                           sequence->tokens.end()));
    return answer;
}

// Every job to its end, as many at a time as there are slots; in the order of `jobs`.
inline std::vector<Answer> run_jobs(Engine& engine, const std::vector<Job>& jobs, double budget_ms = -1) {
    std::vector<Answer> answers(jobs.size());
    std::vector<std::pair<uint64_t, size_t>> live; // id, job
    size_t next = 0;
    while (next < jobs.size() || !live.empty()) {
        while (next < jobs.size() && live.size() < engine.max_sequences()) {
            auto id = engine.create_sequence(jobs[next].request());
            EXPECT_TRUE(id.ok()) << id.status().message();
            if (!id.ok()) return answers;
            live.emplace_back(id.value(), next++);
        }
        auto finished = [&](uint64_t id) { return find_sequence(engine, id)->stop != StopReason::none; };
        drive(engine, [&] { return std::any_of(live.begin(), live.end(), [&](auto& at) { return finished(at.first); }); },
              budget_ms);
        if (::testing::Test::HasFatalFailure()) return answers;
        std::erase_if(live, [&](auto& at) {
            if (!finished(at.first)) return false;
            answers[at.second] = answer_of(engine, at.first);
            EXPECT_TRUE(destroy_sequence(engine, at.first).ok());
            return true;
        });
    }
    return answers;
}
inline Answer run_job(Engine& engine, const Job& job) { return run_jobs(engine, {job}).front(); }

inline std::string show(const std::vector<uint32_t>& tokens) {
    std::string text;
    for (uint32_t token : tokens) text += std::to_string(token) + " ";
    return text;
}

} // namespace auspex::test
