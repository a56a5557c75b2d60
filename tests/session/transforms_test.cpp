// Penalties, biases and truncation through the whole engine: greedy text with speculation is plain text, a draft that is its
// target is always accepted, samples have exactly the transformed target's distribution; and what planted faults do to that.
#include "session/prompts.h"
#include "session/sampling_rig.h"
#include "test_shaders.h"

#include <cmath>

namespace auspex::transforms_test {
namespace {

using namespace test;
using namespace test::sampling;

SamplingParams penalties(float repeat, float presence, float frequency, std::vector<TokenBias> biases = {}) {
    SamplingParams s;
    s.repeat_penalty = repeat;
    s.presence_penalty = presence;
    s.frequency_penalty = frequency;
    s.biases = std::move(biases);
    return s;
}
SamplingParams truncation(uint32_t top_k, float top_p, float min_p, SamplingParams s = {}) {
    s.top_k = top_k;
    s.top_p = top_p;
    s.min_p = min_p;
    return s;
}
bool contains(const std::vector<uint32_t>& tokens, uint32_t token) {
    return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

// The shader and its variant with shuffles become their faulty builds.
void plant(Engine& engine, const std::string& stem, int number) {
    int found = 0;
    for (const std::string& variant : {stem, stem + ".subgroup"}) {
        const auto spirv = test_shader(variant + ".fault" + std::to_string(number));
        if (spirv.empty()) continue;
        engine.kernels().replace(variant, spirv);
        ++found;
    }
    EXPECT_GT(found, 0) << stem << " has no fault " << number;
}

TEST(TransformedGreedy, speculative_text_is_plain_text) {
    auto engine = make_engine(bundled_pair(8, 300));
    ASSERT_TRUE(engine);
    auto prompts = bundled_prompts(*engine);
    prompts.resize(4);
    std::vector<Job> untouched;
    for (const auto& prompt : prompts) untouched.push_back({.prompt = prompt, .max_tokens = 40});
    const auto neutral = run_jobs(*engine, untouched);
    const uint32_t favourite = neutral[0].tokens[0], other = neutral[1].tokens[3];
    // Truncation says nothing at temperature 0.
    for (const SamplingParams& s : {penalties(1.3f, 0, 0), penalties(1, 0.5f, 0.4f, {{favourite, -INFINITY}, {other, -4}}),
                                    truncation(1, 0.3f, 0.5f, penalties(1.1f, -0.2f, 0.3f, {{favourite, -INFINITY}, {other, 2}}))}) {
        std::vector<Job> plain = untouched;
        for (Job& job : plain) job.transforms = s;
        const auto expected = run_jobs(*engine, plain);
        size_t changed = 0, drafted = 0, accepted = 0;
        for (size_t i = 0; i < plain.size(); ++i) {
            changed += expected[i].tokens != neutral[i].tokens ? 1 : 0;
            EXPECT_FALSE(!s.biases.empty() && contains(expected[i].tokens, favourite)) << "a banned token was said";
        }
        EXPECT_GT(changed, 0u);
        for (uint32_t draft_len = 1; draft_len <= 8; ++draft_len) {
            std::vector<Job> speculative = plain;
            for (Job& job : speculative) job.draft_len = draft_len;
            const auto found = run_jobs(*engine, speculative);
            for (size_t i = 0; i < plain.size(); ++i) {
                EXPECT_EQ(found[i].tokens, expected[i].tokens) << "draft_len " << draft_len << ", prompt " << i;
                drafted += found[i].stats.draft_n;
                accepted += found[i].stats.draft_n_accepted;
            }
        }
        EXPECT_GT(accepted, drafted / 20);
        EXPECT_LT(accepted, drafted);
    }
}

// The longest lists of more sequences than one turn has commands for: they come in over several turns.
TEST(TransformedGreedy, long_bias_lists_of_many_sequences_wait_for_room) {
    constexpr uint32_t kMany = 24, kWords = 1100;
    EngineDesc desc;
    desc.target_synthetic = random_model({.vocab = kWords}, 5);
    desc.max_sequences = kMany;
    desc.max_context = 40;
    auto engine = make_engine(desc);
    ASSERT_TRUE(engine);
    SamplingParams s;
    for (uint32_t token = 0; token < gpu::kMaxBiases; ++token) s.biases.push_back({token, -INFINITY}); // what is left: the last 76
    std::vector<uint64_t> ids;
    for (uint32_t i = 0; i < kMany; ++i) ids.push_back(engine->create_sequence({random_prompt(1 + i % 5, kWords, i), 8, s, 0, true}).value());
    drive(*engine);
    ASSERT_FALSE(HasFatalFailure());
    for (uint32_t i = 0; i < kMany; ++i) {
        const Answer together = answer_of(*engine, ids[i]);
        ASSERT_TRUE(destroy_sequence(*engine, ids[i]).ok());
        const Answer alone = run_job(*engine, {.prompt = random_prompt(1 + i % 5, kWords, i), .max_tokens = 8, .transforms = s});
        EXPECT_EQ(together.tokens, alone.tokens) << "sequence " << i;
        for (uint32_t token : together.tokens) EXPECT_GE(token, gpu::kMaxBiases);
    }
}

// Small models, several slots with settings of their own in one batch.
class RandomPair : public ::testing::Test {
  protected:
    static constexpr uint32_t kWords = 97;
    static EngineDesc pair(uint64_t draft_seed, uint32_t slots) {
        EngineDesc desc;
        const Shape shape = {.vocab = kWords, .scale = 0.3f};
        desc.target_synthetic = random_model(shape, 5);
        desc.draft_synthetic = random_model(shape, draft_seed);
        desc.max_sequences = slots;
        desc.max_context = 200;
        desc.cache_dtype = DType::f32;
        return desc;
    }
    static std::vector<Job> jobs(float temperature) {
        const std::vector<SamplingParams> settings = {
            {}, penalties(1.5f, 0, 0), penalties(1, 0.5f, 0.3f), penalties(1, 0, 0, {{3, -INFINITY}, {10, 1.5f}, {96, -2}}),
            truncation(5, 1, 0), truncation(0, 0.8f, 0), truncation(0, 1, 0.1f), truncation(20, 0.9f, 0.02f, penalties(1.2f, 0.1f, 0.1f, {{7, -INFINITY}}))};
        std::vector<Job> jobs;
        for (uint32_t draft_len = 1; draft_len <= 8; ++draft_len)
            for (size_t i = 0; i < settings.size(); ++i)
                jobs.push_back({.prompt = random_prompt(1 + static_cast<uint32_t>(7 * i) + draft_len, kWords, i + 10 * draft_len), .max_tokens = 60,
                                .draft_len = draft_len, .temperature = temperature, .seed = i + 100 * draft_len, .transforms = settings[i]});
        return jobs;
    }
    static uint32_t n_corrections(const std::vector<Answer>& answers) {
        uint32_t n = 0;
        for (const Answer& answer : answers) n += answer.n_of(TokenOrigin::correction);
        return n;
    }
};

TEST_F(RandomPair, greedy_text_is_plain_text) {
    auto engine = make_engine(pair(6, 8));
    ASSERT_TRUE(engine);
    std::vector<Job> speculative = jobs(0), plain = speculative;
    for (Job& job : plain) job.draft_len = 0;
    const auto expected = run_jobs(*engine, plain), found = run_jobs(*engine, speculative);
    for (size_t i = 0; i < plain.size(); ++i) EXPECT_EQ(found[i].tokens, expected[i].tokens) << "job " << i;
}

TEST_F(RandomPair, coupled_text_is_plain_text) {
    auto engine = make_engine(pair(6, 8));
    ASSERT_TRUE(engine);
    std::vector<Job> speculative = jobs(0.8f);
    for (Job& job : speculative) job.transforms.acceptance = AcceptanceRule::coupled;
    std::vector<Job> plain = speculative;
    for (Job& job : plain) job.draft_len = 0;
    const auto expected = run_jobs(*engine, plain), found = run_jobs(*engine, speculative);
    uint32_t accepted = 0;
    for (size_t i = 0; i < plain.size(); ++i) {
        EXPECT_EQ(found[i].tokens, expected[i].tokens) << "job " << i;
        accepted += found[i].stats.draft_n_accepted;
    }
    EXPECT_GT(accepted, 0u);
}

// The same logits, transformed in the same context, whoever computed them.
TEST_F(RandomPair, twins_accept_everything) {
    for (float temperature : {0.0f, 0.9f}) {
        auto engine = make_engine(pair(5, 8));
        ASSERT_TRUE(engine);
        const std::vector<Job> all = jobs(temperature);
        const auto answers = run_jobs(*engine, all);
        EXPECT_EQ(n_corrections(answers), 0u);
        for (size_t i = 0; i < all.size(); ++i) {
            EXPECT_EQ(answers[i].tokens.size(), 60u);
            for (const TokenBias& one : all[i].transforms.biases) { EXPECT_FALSE(std::isinf(one.bias) && contains(answers[i].tokens, one.token)); }
        }
    }
}

// Penalties of the target only, and a context that does not grow: twins disagree. (Sampling stays lossless under the first,
// as under any draft, so only acceptance can show it.)
TEST_F(RandomPair, twins_see_penalties_that_draft_and_target_do_not_share) {
    for (int fault : {1, 2}) {
        auto engine = make_engine(pair(5, 8));
        ASSERT_TRUE(engine);
        plant(*engine, "edit_logits", fault);
        std::vector<Job> speculative = jobs(0), plain = speculative;
        for (Job& job : plain) job.draft_len = 0;
        const auto expected = run_jobs(*engine, plain), found = run_jobs(*engine, speculative);
        bool same = true;
        for (size_t i = 0; i < plain.size(); ++i) same = same && found[i].tokens == expected[i].tokens;
        if (fault == 1) { EXPECT_GT(n_corrections(found), 0u); }
        if (fault == 2) { EXPECT_FALSE(same) << "both models are wrong alike, but plain text is not"; }
    }
}

struct SamplingCase {
    const char* name;
    Case c;
};
std::vector<SamplingCase> sampling_cases() {
    return {{"top_k", {2, 1.0f, 6, 30000, truncation(3, 1, 0)}},
            {"top_p", {3, 1.3f, 17, 30000, truncation(0, 0.7f, 0)}},
            {"min_p", {1, 0.8f, 6, 30000, truncation(0, 1, 0.25f)}},
            {"penalties", {3, 1.0f, 1, 30000, penalties(2.0f, 0.8f, 1.0f)}},
            {"biases", {2, 1.0f, 1, 30000, penalties(1, 0, 0, {{2, -INFINITY}, {5, 1.0f}})}},
            {"everything", {2, 0.9f, 6, 30000, truncation(5, 0.9f, 0.05f, penalties(1.3f, 0.2f, 0.3f, {{0, 0.7f}, {4, -INFINITY}}))}},
            {"everything_plain", {0, 0.9f, 6, 30000, truncation(5, 0.9f, 0.05f, penalties(1.3f, 0.2f, 0.3f, {{0, 0.7f}, {4, -INFINITY}}))}}};
}

class TransformedSampling : public ::testing::TestWithParam<SamplingCase> {};

TEST_P(TransformedSampling, completions_have_the_transformed_targets_distribution) {
    auto engine = make_engine(tiny_pair(128));
    ASSERT_TRUE(engine);
    const Case& c = GetParam().c;
    const auto prompt = random_prompt(c.prompt_n, kVocab, 11);
    const auto counts = complete(*engine, prompt, c, 7000000 * (c.draft_len + 1));
    ASSERT_FALSE(HasFatalFailure());
    const auto fit = judge(counts, prompt, static_cast<double>(c.temperature), c.transforms);
    EXPECT_GT(fit.p_value, kAlpha) << "chi-square " << fit.statistic << " in " << fit.bins << " bins " << fit.note;
    // The test would notice if nothing had been transformed.
    EXPECT_LT(judge(counts, prompt, static_cast<double>(c.temperature)).p_value, kAlpha);
    RecordProperty("p", std::to_string(fit.p_value));
}

INSTANTIATE_TEST_SUITE_P(, TransformedSampling, ::testing::ValuesIn(sampling_cases()), [](const auto& at) { return at.param.name; });

TEST(TransformedSamplingFaults, planted_faults_are_seen) {
    struct Fault {
        const char *shader, *what;
        int number;
        size_t sampling_case; // that sees it
    };
    for (const Fault& fault : {Fault{"vocab_partials", "the draft's distribution as it was before truncation", 1, 0}, Fault{"edit_logits", "a context that does not grow with the drafts", 2, 3},
                               Fault{"accept_race", "a cut ignored in the race", 10, 0}}) {
        auto engine = make_engine(tiny_pair(128));
        ASSERT_TRUE(engine);
        plant(*engine, fault.shader, fault.number);
        Case c = sampling_cases()[fault.sampling_case].c;
        c.completions = 8000;
        const auto prompt = random_prompt(c.prompt_n, kVocab, 11);
        EXPECT_LT(judge(complete(*engine, prompt, c, 5), prompt, static_cast<double>(c.temperature), c.transforms).p_value, kAlpha) << fault.what;
    }
}

} // namespace
} // namespace auspex::transforms_test
