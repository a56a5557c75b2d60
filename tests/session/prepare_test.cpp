// What Engine::prepare compiled suffices: no step compiles anything after it, however sequences come and share their rounds.
#include "session/engine_fixture.h"

namespace auspex::prepare_test {
namespace {

using namespace test;

constexpr uint32_t kVocab = 61, kSlots = 3, kContext = 160, kMaxDraft = 4;

std::unique_ptr<Engine> new_engine(bool has_draft = true, uint32_t n_slots = kSlots) {
    EngineDesc desc;
    desc.target_synthetic = random_model({.vocab = kVocab}, 1);
    if (has_draft) desc.draft_synthetic = random_model({.layers = 1, .heads = 1, .vocab = kVocab, .dtype = DType::bf16}, 2);
    desc.max_sequences = n_slots;
    desc.max_context = kContext;
    desc.max_draft_len = kMaxDraft;
    desc.adjust_tuning = [](Tuning& tuning) { tuning.prompt_by_rows = false; }; // prompts have kernels of their own
    return make_engine(desc);
}

// Alone and together, with prompts of any length, forked, and within a budget.
std::vector<Job> jobs_like(const Job& job) {
    std::vector<Job> jobs;
    for (uint32_t i = 0; i < 7; ++i) {
        jobs.push_back(job);
        jobs.back().prompt = random_prompt(3 + 21 * i, kVocab, i);
        jobs.back().max_tokens = 3 + 4 * i;
        jobs.back().seed = i;
        if (job.draft_len != 0 && i % 2 == 1) jobs.back().draft_len = 1 + i / 2; // up to 4
    }
    return jobs;
}
void run_all(Engine& engine, const std::vector<Job>& jobs) {
    run_jobs(engine, jobs);
    run_jobs(engine, jobs, 0.05);
    for (const Job& job : jobs) run_job(engine, job);
    SequenceRequest held = jobs.back().request(), forked = held;
    held.max_tokens = kHoldTokens;
    forked.prompt.clear();
    auto source = engine.create_sequence(held);
    ASSERT_TRUE(source.ok());
    for (uint32_t i = 1; i < kSlots; ++i) ASSERT_TRUE(engine.fork_sequence(source.value(), forked).ok());
    drive(engine);
}

struct PrepareCase {
    const char* name;
    Job job;
    bool has_draft = true;
};
class PrepareFor : public ::testing::TestWithParam<PrepareCase> {};

TEST_P(PrepareFor, compiles_all_that_steps_need) {
    auto engine = new_engine(GetParam().has_draft);
    ASSERT_TRUE(engine);
    const Status prepared = engine->prepare(GetParam().job.request());
    ASSERT_TRUE(prepared.ok()) << prepared.message();
    const size_t n = engine->kernels().n_kernels();
    EXPECT_GT(n, 0u);
    run_all(*engine, jobs_like(GetParam().job));
    EXPECT_EQ(engine->kernels().n_kernels(), n);
}

const PrepareCase kCases[] = {
    {"automatic", {.draft_len = kAutoDraftLen, .drafter = DrafterChoice::automatic}},
    {"automatic_without_draft", {.draft_len = kAutoDraftLen, .drafter = DrafterChoice::automatic}, false},
    {"plain", {.drafter = DrafterChoice::none}},
    {"sampled_by_the_model", {.draft_len = kMaxDraft, .temperature = 0.8f}},
    {"everything", {.draft_len = kMaxDraft, .temperature = 0.8f,
                    .transforms = {.repeat_penalty = 1.1f, .top_k = 20, .top_p = 0.9f, .min_p = 0.01f, .biases = {{3, 1.0f}}}}},
    {"top_p_coupled", {.draft_len = kMaxDraft, .temperature = 0.8f, .transforms = {.top_p = 0.9f}, .drafter = DrafterChoice::hybrid, .acceptance = AcceptanceRule::coupled}},
    {"coupled", {.draft_len = kMaxDraft, .temperature = 0.8f, .acceptance = AcceptanceRule::coupled}},
    {"logprobs", {.draft_len = kMaxDraft, .with_logprobs = true, .n_logprobs = 3}},
    {"logprobs_of_everything", {.draft_len = kMaxDraft, .temperature = 0.8f, .transforms = {.repeat_penalty = 1.1f, .top_p = 0.9f}, .with_logprobs = true}},
    {"ngram", {.draft_len = kMaxDraft, .drafter = DrafterChoice::ngram}},
    {"lookup_with_penalties", {.draft_len = kMaxDraft, .transforms = {.presence_penalty = 0.3f}, .drafter = DrafterChoice::lookup}, false},
    {"host", {.draft_len = kMaxDraft, .drafter = DrafterChoice::host,
              .host_drafter = [](std::span<const uint32_t> tokens, uint32_t n) { return std::vector<uint32_t>(n, tokens.back()); }}},
};
INSTANTIATE_TEST_SUITE_P(Requests, PrepareFor, ::testing::ValuesIn(kCases), [](const auto& of) { return of.param.name; });

// Drafting begins late: the draft model is given what was said meanwhile.
TEST(Prepare, compiles_what_catching_up_needs) {
    auto engine = new_engine(true, 1);
    ASSERT_TRUE(engine);
    Job job = {.prompt = random_prompt(5, kVocab, 1), .max_tokens = 40, .draft_len = 2};
    ASSERT_TRUE(engine->prepare(job.request()).ok());
    const size_t n = engine->kernels().n_kernels();
    job.draft_len = 0;
    auto id = engine->create_sequence(job.request());
    ASSERT_TRUE(id.ok());
    const LiveSequence& sequence = *find_sequence(*engine, id.value());
    drive(*engine, [&] { return sequence.n_generated() >= 20; });
    ASSERT_TRUE(set_draft_len(*engine, id.value(), 2).ok());
    drive(*engine);
    EXPECT_GT(sequence.draft_rows, 20u);
    EXPECT_EQ(engine->kernels().n_kernels(), n);
}

// Sequences that were prepared for one by one may share rounds.
TEST(Prepare, what_each_needs_is_what_all_need) {
    auto engine = new_engine();
    ASSERT_TRUE(engine);
    std::vector<Job> jobs;
    for (const PrepareCase& one : kCases) {
        ASSERT_TRUE(engine->prepare(one.job.request()).ok());
        jobs.push_back(one.job);
        jobs.back().prompt = random_prompt(20, kVocab, jobs.size());
        jobs.back().max_tokens = 12;
    }
    const size_t n = engine->kernels().n_kernels();
    for (uint32_t i = 0; i < 3; ++i) {
        run_jobs(*engine, jobs);
        std::rotate(jobs.begin(), jobs.begin() + 2, jobs.end());
    }
    EXPECT_EQ(engine->kernels().n_kernels(), n);
}

TEST(Prepare, compiles_no_more_than_is_asked_for) {
    auto engine = new_engine();
    ASSERT_TRUE(engine);
    ASSERT_TRUE(engine->prepare(kCases[2].job.request()).ok());
    const size_t plain = engine->kernels().n_kernels();
    ASSERT_TRUE(engine->prepare(kCases[0].job.request()).ok());
    EXPECT_GT(engine->kernels().n_kernels(), plain);
    Job bad = kCases[0].job;
    bad.draft_len = kMaxDraft + 1;
    EXPECT_EQ(engine->prepare(bad.request()).code(), Code::invalid_argument);
}

} // namespace
} // namespace auspex::prepare_test
