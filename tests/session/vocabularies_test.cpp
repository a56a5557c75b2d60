// Drafts that know fewer ids than the target, or more: what the target may say, when it ends and how often it says what stay.
#include "session/completions.h"

#include <cmath>

namespace auspex::vocabularies_test {
namespace {

using namespace test;

constexpr uint32_t kVocab = 97, kContext = 128;

// A twin of the target but for its ids and a layer: much of what it drafts is accepted.
EngineDesc pair_of(uint32_t draft_vocab, const std::vector<uint32_t>& eos_ids = {}) {
    EngineDesc desc;
    desc.target_synthetic = random_model({.vocab = kVocab, .scale = 0.2f}, 1);
    desc.target_synthetic->config.eos_ids = eos_ids;
    desc.draft_synthetic = random_model({.vocab = draft_vocab, .scale = 0.2f}, 1);
    desc.max_sequences = 4;
    desc.max_context = kContext;
    return desc;
}

std::vector<Job> drafted_ways(Job job) {
    std::vector<Job> jobs;
    for (DrafterChoice drafter : {DrafterChoice::model, DrafterChoice::ngram, DrafterChoice::hybrid, DrafterChoice::host, DrafterChoice::automatic})
        for (uint32_t draft_len : {1u, 4u, 8u}) {
            job.drafter = drafter;
            job.draft_len = drafter == DrafterChoice::automatic ? kAutoDraftLen : draft_len;
            if (drafter == DrafterChoice::host)
                job.host_drafter = [](std::span<const uint32_t> tokens, uint32_t n) { return arbitrary_drafts(tokens, n, kVocab); };
            jobs.push_back(job);
            job.host_drafter = {};
        }
    return jobs;
}

class Vocabularies : public ::testing::TestWithParam<uint32_t> {}; // of the draft

// Greedy and coupled, transformed or not, after prompts of every id: the text of no drafts, of ids that only the target has too.
TEST_P(Vocabularies, texts_are_plain_texts) {
    auto engine = make_engine(pair_of(GetParam()));
    ASSERT_TRUE(engine);
    EXPECT_EQ(engine->target().config().vocab_size, kVocab);
    EXPECT_EQ(engine->draft()->config().vocab_size, std::min(GetParam(), kVocab));
    uint32_t n_lacking = 0, n_accepted = 0;
    for (uint64_t seed = 1; seed <= 3; ++seed) {
        Job greedy = {.prompt = random_prompt(11, kVocab, seed), .max_tokens = 40, .seed = seed};
        greedy.prompt.back() = seed == 1 ? kVocab - 1 : greedy.prompt.back(); // the draft's first row
        Job coupled = greedy, edited = greedy, truncated = greedy;
        coupled.temperature = truncated.temperature = 1;
        coupled.acceptance = truncated.acceptance = AcceptanceRule::coupled;
        truncated.transforms.top_k = 20;
        truncated.transforms.min_p = 0.01f;
        edited.transforms.repeat_penalty = 1.2f;
        edited.transforms.presence_penalty = 0.1f;
        edited.transforms.biases = {{kVocab - 1, 0.7f}, {kVocab - 2, -INFINITY}, {3, -0.5f}};
        for (const Job& job : {greedy, coupled, edited, truncated}) {
            const Answer plain = run_job(*engine, job);
            for (uint32_t token : plain.tokens) n_lacking += token >= engine->draft()->config().vocab_size;
            const std::vector<Job> jobs = drafted_ways(job);
            const auto answers = run_jobs(*engine, jobs);
            for (size_t i = 0; i < jobs.size(); ++i) {
                EXPECT_EQ(answers[i].tokens, plain.tokens) << "seed " << seed << ", drafter " << int(jobs[i].drafter) << ", draft_len " << jobs[i].draft_len;
                if (jobs[i].drafter == DrafterChoice::model) n_accepted += answers[i].stats.draft_n_accepted;
            }
            if (!job.transforms.biases.empty()) { EXPECT_EQ(std::count(plain.tokens.begin(), plain.tokens.end(), kVocab - 2), 0); }
        }
    }
    EXPECT_EQ(n_lacking > 0, GetParam() < kVocab);
    EXPECT_GT(n_accepted, GetParam() < 10 ? 0u : 100u);
}

// A bias makes what the draft cannot say the target's usual word; one that leaves nothing else ends drafting, not the text.
TEST_P(Vocabularies, biases_reach_ids_that_the_draft_lacks) {
    auto engine = make_engine(pair_of(GetParam()));
    ASSERT_TRUE(engine);
    for (float temperature : {0.0f, 1.0f}) {
        Job job = {.prompt = random_prompt(5, kVocab, 1), .max_tokens = 20, .temperature = temperature};
        job.transforms.biases = {{kVocab - 1, 1000.0f}};
        for (const Job& way : drafted_ways(job)) EXPECT_EQ(run_job(*engine, way).tokens, std::vector<uint32_t>(20, kVocab - 1));
        job.transforms.biases.clear();
        for (uint32_t id = 0; id + 1 < kVocab; ++id) job.transforms.biases.push_back({id, -INFINITY});
        for (const Job& way : drafted_ways(job)) EXPECT_EQ(run_job(*engine, way).tokens, std::vector<uint32_t>(20, kVocab - 1));
    }
}

// The end is an id that only the target has.
TEST_P(Vocabularies, the_targets_end_ends) {
    auto engine = make_engine(pair_of(GetParam()));
    ASSERT_TRUE(engine);
    const Job asked = {.prompt = random_prompt(7, kVocab, 2), .max_tokens = 60};
    const Answer whole = run_job(*engine, asked);
    const auto end = std::find_if(whole.tokens.begin() + 5, whole.tokens.end(), [&](uint32_t token) { return token >= std::min(GetParam(), kVocab - 30); });
    ASSERT_NE(end, whole.tokens.end());
    engine = make_engine(pair_of(GetParam(), {*end}));
    ASSERT_TRUE(engine);
    Job job = asked;
    job.ignore_eos = false;
    const Answer plain = run_job(*engine, job);
    EXPECT_EQ(plain.stop, StopReason::eos);
    EXPECT_EQ(plain.tokens.back(), *end);
    for (const Job& way : drafted_ways(job)) {
        const Answer answer = run_job(*engine, way);
        EXPECT_EQ(answer.tokens, plain.tokens);
        EXPECT_EQ(answer.stop, StopReason::eos);
    }
}

INSTANTIATE_TEST_SUITE_P(, Vocabularies, ::testing::Values(3u, 41u, 96u, 130u), [](const auto& at) { return "draft_of_" + std::to_string(at.param); });

// Every completion as often as the target alone gives it, after a prompt with an id that the draft lacks.
TEST(VocabulariesSampled, completions_are_the_targets) {
    constexpr uint32_t kTiny = 5, kTokens = 3;
    const std::vector<uint32_t> prompt = {3, 0, 4, 2, 4};
    for (uint32_t draft_vocab : {3u, 8u}) {
        EngineDesc desc = tiny_engine(kTiny, 64, 3, true);
        desc.draft_synthetic = tiny_model(draft_vocab, 2);
        auto engine = make_engine(desc);
        ASSERT_TRUE(engine);
        const SequenceRequest request = {.prompt = {}, .max_tokens = kTokens, .sampling = {.temperature = 1}, .draft_len = 3, .ignore_eos = true};
        const Completions found = count_completions(*engine, prompt, request, 4000, 1 + draft_vocab * 100000ull);
        const reference::Fit fit = fit_completions(found.counts, kTiny, kTokens, prompt, 1);
        EXPECT_GT(fit.p_value, 1e-6) << "draft of " << draft_vocab << ": " << fit.note;
        EXPECT_GT(found.accepted, found.drafted / 30);
        EXPECT_LT(found.accepted, found.drafted);
        RecordProperty("p_" + std::to_string(draft_vocab), std::to_string(fit.p_value));
    }
}

} // namespace
} // namespace auspex::vocabularies_test
