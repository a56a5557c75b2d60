// Completions of a tiny random pair through the whole engine, counted, and their exact distribution.
#pragma once

#include "model/reference_checkpoint.h"
#include "reference/statistics.h"
#include "session/engine_fixture.h"

namespace auspex::test::sampling {

constexpr double kAlpha = 1e-6;
constexpr uint32_t kVocab = 7, kTokens = 3; // 343 completions

inline SyntheticModel tiny(uint64_t seed) {
    return random_model({.d = 32, .layers = 1, .heads = 1, .kv_heads = 1, .head_dim = 32, .ffn = 40, .vocab = kVocab, .scale = 0.3f},
                        seed, 64);
}

struct Case {
    uint32_t draft_len;
    float temperature;
    uint32_t prompt_n;  // 17: shared page; 6: copied page; 1: no page
    uint64_t completions;
    SamplingParams transforms = {}; // its temperature and seed do not count

    SamplingParams sampling(uint64_t seed) const {
        SamplingParams out = transforms;
        out.temperature = temperature;
        out.seed = seed;
        return out;
    }
};

// Counts of completions (first token slowest), by forking a prompt that is read once.
inline std::vector<uint64_t> complete(Engine& engine, const std::vector<uint32_t>& prompt, const Case& c, uint64_t first_seed) {
    std::vector<uint64_t> counts(kVocab * kVocab * kVocab);
    const uint32_t per_wave = engine.max_sequences() - 1;
    auto source = engine.create_sequence({prompt, kHoldTokens, c.sampling(0), c.draft_len, true});
    EXPECT_TRUE(source.ok()) << source.status().message();
    for (uint64_t done = 0; source.ok() && done < c.completions; done += per_wave) {
        std::vector<uint64_t> ids;
        for (uint64_t i = 0; i < per_wave; ++i) {
            auto id = engine.fork_sequence(source.value(), {{}, kTokens, c.sampling(first_seed + done + i), c.draft_len, true});
            EXPECT_TRUE(id.ok()) << id.status().message();
            if (!id.ok()) return counts;
            ids.push_back(id.value());
        }
        drive(engine);
        if (::testing::Test::HasFatalFailure()) return counts;
        for (uint64_t id : ids) {
            const LiveSequence* sequence = engine.scheduler().find(id);
            EXPECT_EQ(sequence->stop, StopReason::length);
            EXPECT_EQ(sequence->output.size(), kTokens);
            if (sequence->output.size() != kTokens) return counts;
            counts[(sequence->output[0].id * kVocab + sequence->output[1].id) * kVocab + sequence->output[2].id] += 1;
            EXPECT_TRUE(engine.scheduler().destroy(id).ok());
        }
    }
    if (source.ok()) { EXPECT_TRUE(engine.scheduler().destroy(source.value()).ok()); }
    return counts;
}

inline EngineDesc tiny_pair(uint32_t slots) {
    EngineDesc desc;
    desc.target_synthetic = tiny(1);
    desc.draft_synthetic = tiny(2);
    desc.max_sequences = slots;
    desc.max_context = 64;
    desc.max_draft_len = 3;
    desc.cache_dtype = DType::f32;
    return desc;
}

inline reference::Fit judge(const std::vector<uint64_t>& counts, const std::vector<uint32_t>& prompt, double temperature,
                            const SamplingParams& s = {}) {
    reference::Transforms transforms = {double(s.repeat_penalty), double(s.presence_penalty), double(s.frequency_penalty), {}, s.top_k, double(s.top_p), double(s.min_p)};
    for (const TokenBias& one : s.biases) transforms.biases.emplace_back(one.token, double(one.bias));
    const auto exact = reference_model(tiny(1), false).enumerate(prompt, kTokens, temperature, std::nullopt, transforms);
    return reference::fit(counts, exact);
}

} // namespace auspex::test::sampling
