// Other devices, other submissions, the same text: time budgets, small bindings and grids (sharded weights), reductions
// through shared memory. Everything here is compared bit for bit.
#include "gpu_test.h"
#include "session/engine_fixture.h"
#include "session/gpu_contents.h"

namespace auspex::devices_test {
namespace {

using namespace test;

constexpr uint32_t kVocab = 2999;

void both_families(Tuning& tuning) {
    tuning.prompt_by_rows = false;
}

EngineDesc pair() {
    EngineDesc desc;
    desc.target_synthetic = random_model({.d = 100, .layers = 5, .heads = 3, .head_dim = 64, .ffn = 701, .vocab = kVocab, .scale = 0.15f}, 1);
    desc.draft_synthetic = random_model({.d = 60, .layers = 1, .heads = 2, .ffn = 101, .vocab = kVocab, .tied = true, .dtype = DType::bf16}, 2);
    desc.max_sequences = 4;
    desc.max_context = 160;
    desc.max_draft_len = 4;
    desc.adjust_tuning = both_families;
    return desc;
}

std::vector<Job> jobs() {
    std::vector<Job> jobs;
    for (uint32_t i = 0; i < 6; ++i)
        jobs.push_back({.prompt = random_prompt(5 + 23 * i, kVocab, i), .max_tokens = 24, .draft_len = i % 5, .temperature = i % 2 ? 0.9f : 0.0f, .seed = i});
    return jobs;
}

// Texts, logits after a plain round, and caches.
struct Bits {
    std::vector<Answer> answers;
    std::vector<float> logits;
    std::vector<std::byte> cache;
};
Bits bits_of(Engine& engine) {
    Bits bits;
    bits.answers = run_jobs(engine, jobs());
    auto id = engine.create_sequence({random_prompt(100, kVocab, 9), 3, keeping_logits(), 0, true});
    drive(engine);
    bits.logits = last_logits(engine);
    const LiveSequence& sequence = *find_sequence(engine, id.value());
    bits.cache = cache_rows(engine, engine.target(), sequence.slot->number, sequence.target_len);
    EXPECT_TRUE(destroy_sequence(engine, id.value()).ok());
    return bits;
}
const Bits& native_bits() {
    static const Bits bits = [] {
        auto engine = make_engine(pair());
        return engine ? bits_of(*engine) : Bits{};
    }();
    return bits;
}
void expect_equal(const Engine& engine, const Bits& found, const Bits& expected) {
    ASSERT_EQ(found.answers.size(), expected.answers.size());
    for (size_t i = 0; i < expected.answers.size(); ++i) {
        EXPECT_EQ(found.answers[i].tokens, expected.answers[i].tokens) << "job " << i;
        EXPECT_EQ(found.answers[i].origins, expected.answers[i].origins) << "job " << i;
    }
    EXPECT_EQ(std::memcmp(found.logits.data(), expected.logits.data(), expected.logits.size() * 4), 0);
    EXPECT_EQ(first_difference(engine.target().cache().shape(), found.cache, expected.cache), "");
}

TEST(Devices, a_time_budget_changes_no_bit) {
    auto engine = make_engine(pair());
    ASSERT_TRUE(engine);
    for (double budget_ms : {0.0, 0.3, 2.0, 1000.0}) {
        const auto answers = run_jobs(*engine, jobs(), budget_ms);
        ASSERT_FALSE(HasFatalFailure());
        for (size_t i = 0; i < answers.size(); ++i) EXPECT_EQ(answers[i].tokens, native_bits().answers[i].tokens) << "budget " << budget_ms << " ms, job " << i;
    }
    // Sliced and whole rounds in turn.
    uint32_t n = 0;
    auto id = engine->create_sequence(jobs()[3].request());
    for (;;) {
        auto stepped = step(*engine, n++ % 3 ? 0.01 : -1);
        ASSERT_TRUE(stepped.ok()) << stepped.status().message();
        if (!stepped.value().pending) break;
        ASSERT_TRUE(engine->turns().wait(60'000'000'000).ok());
        ASSERT_LT(n, 10000u);
    }
    EXPECT_EQ(answer_of(*engine, id.value()).tokens, native_bits().answers[3].tokens);
}

// One segment at a time: a destroyed engine waits for what it began.
TEST(Devices, an_engine_may_go_in_the_middle_of_a_round) {
    for (int steps : {1, 2, 5, 9}) {
        auto engine = make_engine(pair());
        ASSERT_TRUE(engine);
        ASSERT_TRUE(engine->create_sequence(jobs()[1].request()).ok());
        for (int i = 0; i < steps; ++i) ASSERT_TRUE(step(*engine, 0.0).ok());
    }
}

TEST(Devices, sharded_weights_change_no_bit) {
    EngineDesc desc = pair();
    desc.adjust_caps = [](DeviceCaps& caps) {
        caps.max_storage_buffer_range = 400 << 10;
        caps.max_groups[0] = 64;
    };
    auto engine = make_engine(desc);
    ASSERT_TRUE(engine);
    EXPECT_GE(engine->target().weights().embedding.shards.size(), 3u);
    EXPECT_GE(engine->target().weights().lm_head.shards.size(), 3u);
    EXPECT_GE(engine->target().weights().layers[0].gate_up.parts.at(0).shards.size(), 2u);
    EXPECT_GE(engine->draft()->weights().embedding.shards.size(), 1u);
    expect_equal(*engine, bits_of(*engine), native_bits());
}

TEST(Devices, shared_memory_reductions_change_no_bit) {
    EngineDesc desc = pair();
    desc.adjust_tuning = [](Tuning& tuning) {
        both_families(tuning);
        tuning = without_shuffles(tuning);
    };
    auto engine = make_engine(desc);
    ASSERT_TRUE(engine);
    expect_equal(*engine, bits_of(*engine), native_bits());
}

TEST(Devices, compiling_on_several_threads_changes_no_bit) {
    EngineDesc desc = pair();
    desc.compile_threads = 4;
    auto engine = make_engine(desc);
    ASSERT_TRUE(engine);
    EXPECT_EQ(engine->kernels().n_threads(), 4u);
    expect_equal(*engine, bits_of(*engine), native_bits());
}

// Bit-neutral knobs are: rows built, outputs per team, teams, steps at once.
TEST(Devices, bit_neutral_knobs_are) {
    EngineDesc desc = pair();
    desc.adjust_tuning = [](Tuning& tuning) {
        both_families(tuning);
        tuning.wide = false;
        tuning.matvec_rows = {1, 3, 8};
        tuning.matvec_teams = 3;
        tuning.matvec_outs = 2;
        tuning.matvec_many_outs = 4;
        tuning.matvec_ahead = tuning.matvec_many_ahead = 3;
    };
    auto engine = make_engine(desc);
    ASSERT_TRUE(engine);
    expect_equal(*engine, bits_of(*engine), native_bits());
}

class Lanes : public ::testing::TestWithParam<uint32_t> {};

// Other lanes give other bits, but drafts and no drafts give the same.
TEST_P(Lanes, greedy_text_is_plain_text) {
    EngineDesc desc = pair();
    desc.adjust_tuning = [](Tuning& tuning) {
        both_families(tuning);
        tuning = without_shuffles(tuning, GetParam());
        tuning.attention_split = 32;
    };
    auto engine = make_engine(desc);
    ASSERT_TRUE(engine);
    std::vector<Job> plain = jobs();
    plain.resize(4);
    std::vector<Job> speculative = plain;
    for (size_t i = 0; i < plain.size(); ++i) {
        plain[i].temperature = speculative[i].temperature = 0;
        plain[i].draft_len = 0;
        plain[i].max_tokens = speculative[i].max_tokens = 12;
        speculative[i].draft_len = static_cast<uint32_t>(1 + i % 4);
    }
    const auto expected = run_jobs(*engine, plain), found = run_jobs(*engine, speculative);
    for (size_t i = 0; i < plain.size(); ++i) EXPECT_EQ(found[i].tokens, expected[i].tokens) << "job " << i;
}

INSTANTIATE_TEST_SUITE_P(lanes, Lanes, ::testing::Values(16u, 32u));

} // namespace
} // namespace auspex::devices_test
