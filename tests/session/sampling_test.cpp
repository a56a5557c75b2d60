// Speculative sampling end to end against exact enumeration: completions of a tiny random pair through the whole engine
// have the distribution that the double-precision target alone gives.
#include "model/reference_checkpoint.h"
#include "reference/statistics.h"
#include "session/engine_fixture.h"
#include "test_shaders.h"

namespace auspex {
namespace {

using namespace test;

constexpr double kAlpha = 1e-6;
constexpr uint32_t kVocab = 7, kTokens = 3;

SyntheticModel tiny(uint64_t seed) {
    return random_model({.d = 32, .layers = 1, .heads = 1, .kv_heads = 1, .head_dim = 32, .ffn = 40, .vocab = kVocab, .scale = 0.3f},
                        seed, 64);
}

struct Case {
    uint32_t draft_len;
    float temperature;
    uint32_t prompt_n;  // 17: shared page; 6: copied page; 1: no page
    uint64_t completions;
};

// Counts of completions (first token slowest), by forking a prompt that is read once.
std::vector<uint64_t> complete(Engine& engine, const std::vector<uint32_t>& prompt, const Case& c, uint64_t first_seed) {
    std::vector<uint64_t> counts(kVocab * kVocab * kVocab);
    const uint32_t per_wave = engine.max_sequences() - 1;
    auto source = engine.create_sequence({prompt, kHoldTokens, {c.temperature, 0}, c.draft_len, true});
    EXPECT_TRUE(source.ok()) << source.status().message();
    for (uint64_t done = 0; source.ok() && done < c.completions; done += per_wave) {
        std::vector<uint64_t> ids;
        for (uint64_t i = 0; i < per_wave; ++i) {
            auto id = engine.fork_sequence(source.value(), {{}, kTokens, {c.temperature, first_seed + done + i}, c.draft_len, true});
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

EngineDesc tiny_pair(uint32_t slots) {
    EngineDesc desc;
    desc.target_synthetic = tiny(1);
    desc.draft_synthetic = tiny(2);
    desc.max_sequences = slots;
    desc.max_context = 64;
    desc.max_draft_len = 3;
    desc.cache_dtype = DType::f32;
    return desc;
}

reference::Fit judge(const std::vector<uint64_t>& counts, const std::vector<uint32_t>& prompt, double temperature) {
    const auto exact = reference_model(tiny(1), false).enumerate(prompt, kTokens, temperature);
    return reference::fit(counts, exact);
}

TEST(Sampling, completions_have_the_targets_distribution) {
    auto engine = make_engine(tiny_pair(128));
    ASSERT_TRUE(engine);
    uint64_t total = 0;
    for (const Case& c : {Case{0, 1.0f, 6, 20000}, Case{1, 1.0f, 17, 30000}, Case{2, 1.0f, 6, 30000}, Case{3, 1.0f, 1, 30000},
                          Case{2, 0.6f, 17, 20000}, Case{3, 1.7f, 6, 20000}}) {
        const auto prompt = random_prompt(c.prompt_n, kVocab, 11);
        const auto counts = complete(*engine, prompt, c, 1000000 * (c.draft_len + 1) + c.prompt_n);
        ASSERT_FALSE(HasFatalFailure());
        const reference::Fit fit = judge(counts, prompt, static_cast<double>(c.temperature));
        EXPECT_GT(fit.p_value, kAlpha) << "draft_len " << c.draft_len << ", temperature " << c.temperature << ": chi-square "
                                       << fit.statistic << " in " << fit.bins << " bins " << fit.note;
        RecordProperty("p_" + std::to_string(c.draft_len) + "_" + std::to_string(c.prompt_n), std::to_string(fit.p_value));
        if (c.draft_len > 0) total += c.completions;
    }
    EXPECT_GE(total, 100000u);
}

// Accepts with wrong shaders: the same test must see them.
TEST(Sampling, planted_faults_are_seen) {
    for (const char* fault : {"accept_race.fault1", "accept_test.fault2"}) {
        auto engine = make_engine(tiny_pair(128));
        ASSERT_TRUE(engine);
        const std::string name = fault, stem = name.substr(0, name.find('.')), number = name.substr(name.find('.'));
        for (const std::string variant : {"", ".subgroup"}) {
            const auto spirv = test_shader(stem + variant + number);
            if (!spirv.empty()) engine->kernels().replace(stem + variant, spirv);
        }
        const auto prompt = random_prompt(6, kVocab, 11);
        const Case c = {2, 1.0f, 6, 20000};
        const auto fit = judge(complete(*engine, prompt, c, 5), prompt, 1.0);
        EXPECT_LT(fit.p_value, kAlpha) << fault;
    }
}

} // namespace
} // namespace auspex
