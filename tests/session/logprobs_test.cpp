// Log-probabilities through the whole engine: those of plain decoding bit for bit, whatever drafts, sampling and company; of the target's
// row before anything is done to it; one for each token however a sequence ends; and nothing of it for those who do not ask.
#include "model/model_files.h"
#include "reference/ops.h"
#include "session/prompts.h"
#include "session/same_answer.h"
#include "session/turns/turn_forms.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>

namespace auspex::logprobs_test {
namespace {

using namespace test;

constexpr uint32_t kVocab = 203;

EngineDesc random_pair(uint32_t slots, uint64_t draft_seed = 6) {
    const Shape shape = {.d = 72, .layers = 2, .heads = 3, .ffn = 100, .vocab = kVocab, .scale = 0.3f};
    EngineDesc desc;
    desc.target_synthetic = random_model(shape, 5);
    desc.draft_synthetic = random_model(shape, draft_seed);
    desc.max_sequences = slots;
    desc.max_context = 150;
    return desc;
}

// Every row by the row family, as scores are.
EngineDesc by_rows(EngineDesc desc) {
    desc.adjust_tuning = [](Tuning& tuning) { tuning.prompt_by_rows = true; };
    return desc;
}

void expect_in_step(const Answer& answer, uint32_t n_best, const std::string& what) {
    ASSERT_EQ(answer.logprobs.size(), answer.tokens.size()) << what;
    for (size_t i = 0; i < answer.tokens.size(); ++i) {
        EXPECT_EQ(answer.logprobs[i].token.id, answer.tokens[i]) << what << ", token " << i;
        EXPECT_EQ(answer.logprobs[i].n_best, n_best) << what;
    }
}

// What the engine's own scores say of a text, in double.
void expect_of_scores(Engine& engine, const std::vector<uint32_t>& prompt, const Answer& answer) {
    std::vector<uint32_t> tokens = prompt;
    tokens.insert(tokens.end(), answer.tokens.begin(), answer.tokens.end());
    const Status status = engine.score(tokens, [&](uint32_t row, std::span<const float> logits) {
        if (row + 1 < prompt.size() || row + 1 >= tokens.size()) return;
        const reference::Vector z(logits.begin(), logits.end()), expected = reference::log_softmax(z);
        const TokenLogprobs& found = answer.logprobs[row + 1 - prompt.size()];
        const std::vector<uint32_t> best = reference::largest(z, found.n_best);
        EXPECT_EQ(found.token.id, tokens[row + 1]);
        EXPECT_NEAR(found.token.logprob, expected[tokens[row + 1]], 4e-6) << "row " << row;
        for (uint32_t i = 0; i < found.n_best; ++i) {
            EXPECT_EQ(found.best[i].id, best[i]) << "row " << row << ", place " << i;
            EXPECT_NEAR(found.best[i].logprob, expected[best[i]], 4e-6) << "row " << row << ", place " << i;
        }
    });
    ASSERT_TRUE(status.ok()) << status.message();
}

SamplingParams edits() { return {.repeat_penalty = 1.3f, .presence_penalty = 0.4f, .frequency_penalty = 0.2f, .biases = {{11, -INFINITY}, {300, 2.0f}, {301, -2.0f}}}; }

TEST(Logprobs, are_those_of_plain_decoding) {
    auto engine = make_engine(by_rows(bundled_pair(4, 200)));
    ASSERT_TRUE(engine);
    auto prompts = bundled_prompts(*engine);
    prompts.resize(3);
    SamplingParams truncated = edits();
    truncated.top_p = 0.8f;
    truncated.top_k = 50;
    const Job kinds[] = {{.with_logprobs = true, .n_logprobs = 5},
                         {.transforms = edits(), .with_logprobs = true, .n_logprobs = 20},
                         {.temperature = 0.8f, .acceptance = AcceptanceRule::coupled, .with_logprobs = true},
                         {.temperature = 0.8f, .transforms = truncated, .acceptance = AcceptanceRule::coupled, .with_logprobs = true, .n_logprobs = 1}};
    for (size_t kind = 0; kind < std::size(kinds); ++kind) {
        std::vector<Job> jobs;
        std::vector<Answer> plain;
        for (const auto& prompt : prompts) {
            Job job = kinds[kind];
            job.prompt = prompt;
            job.max_tokens = 30;
            jobs.push_back(job);
            plain.push_back(run_job(*engine, job)); // alone, without drafts
            expect_in_step(plain.back(), job.n_logprobs, "plain");
            expect_of_scores(*engine, prompt, plain.back());
            Job silent = job;
            silent.with_logprobs = false;
            silent.n_logprobs = 0;
            const Answer without = run_job(*engine, silent);
            EXPECT_EQ(without.tokens, plain.back().tokens) << "asking changes the text";
            EXPECT_TRUE(without.logprobs.empty());
        }
        size_t accepted = 0, rejected = 0;
        for (const DrafterChoice drafter : {DrafterChoice::model, DrafterChoice::ngram, DrafterChoice::automatic})
            for (const uint32_t draft_len : {0u, 3u, 8u, kAutoDraftLen}) {
                for (Job& job : jobs) {
                    job.drafter = drafter;
                    job.draft_len = draft_len;
                }
                const auto found = run_jobs(*engine, jobs); // together
                for (size_t i = 0; i < jobs.size(); ++i) {
                    expect_same(found[i], plain[i], "kind " + std::to_string(kind) + ", prompt " + std::to_string(i) + ", draft_len " + std::to_string(draft_len));
                    if (HasFatalFailure()) return;
                    accepted += found[i].stats.draft_n_accepted;
                    rejected += found[i].stats.draft_n - found[i].stats.draft_n_accepted;
                }
            }
        EXPECT_GT(accepted, 40u);
        EXPECT_GT(rejected, 20u);
    }
}

// Drafts drawn and tested by rejection give other texts; the same one alone and in company, with the rows of that text.
TEST(Logprobs, of_drawn_texts_are_of_their_rows) {
    auto engine = make_engine(random_pair(4));
    ASSERT_TRUE(engine);
    for (const SamplingParams& sampling : {SamplingParams{}, SamplingParams{.repeat_penalty = 1.5f, .frequency_penalty = 0.5f, .biases = {{7, 3.0f}, {8, -INFINITY}}}})
        for (const uint32_t draft_len : {0u, 3u}) {
            const Job job = {.prompt = {7}, .max_tokens = 60, .draft_len = draft_len, .temperature = 1, .seed = 4, .transforms = sampling, .with_logprobs = true, .n_logprobs = 4};
            const Answer alone = run_job(*engine, job);
            expect_in_step(alone, 4, "alone");
            expect_of_scores(*engine, job.prompt, alone);
            const auto found = run_jobs(*engine, {{.prompt = random_prompt(20, kVocab, 1), .max_tokens = 50, .draft_len = 3}, job, job});
            expect_same(found[1], alone, "in company");
            expect_same(found[2], alone, "in company");
        }
}

// Seen, biased and banned tokens have the model's own log-probabilities.
TEST(Logprobs, know_nothing_of_penalties_and_biases) {
    auto engine = make_engine(by_rows(random_pair(1)));
    ASSERT_TRUE(engine);
    const Job untouched = {.prompt = {7}, .max_tokens = 1, .with_logprobs = true, .n_logprobs = 3};
    const Answer raw = run_job(*engine, untouched);
    const TokenLogprob favourite = raw.logprobs[0].token;
    ASSERT_TRUE(is_same(favourite, raw.logprobs[0].best[0]));
    Job banning = untouched;
    banning.transforms.biases = {{favourite.id, -INFINITY}, {100, 50.0f}};
    const Answer banned = run_job(*engine, banning);
    EXPECT_EQ(banned.tokens[0], 100u);
    for (uint32_t i = 0; i < 3; ++i) EXPECT_TRUE(is_same(banned.logprobs[0].best[i], raw.logprobs[0].best[i]));
    Job seen = {.prompt = {7, 100}, .max_tokens = 100, .draft_len = 4, .transforms = {.repeat_penalty = 0.2f, .presence_penalty = -3}, .with_logprobs = true, .n_logprobs = 20};
    const Answer repeated = run_job(*engine, seen); // what was said is said again
    EXPECT_LT(std::set<uint32_t>(repeated.tokens.begin(), repeated.tokens.end()).size(), 40u);
    expect_of_scores(*engine, seen.prompt, repeated);
}

// Rounds are shared by sequences that ask for much, for little, and for nothing.
TEST(Logprobs, are_given_to_those_who_ask) {
    auto engine = make_engine(random_pair(5));
    ASSERT_TRUE(engine);
    std::vector<Job> jobs;
    for (uint32_t i = 0; i < 5; ++i)
        jobs.push_back({.prompt = random_prompt(3 + 5 * i, kVocab, i), .max_tokens = 30 + 3 * i, .draft_len = i == 3 ? 0 : i, .temperature = i % 2 ? 0.0f : 0.9f, .seed = i,
                        .transforms = i < 2 ? SamplingParams{.repeat_penalty = 1.2f} : SamplingParams{}});
    const auto silent = run_jobs(*engine, jobs);
    jobs[1].with_logprobs = jobs[2].with_logprobs = jobs[4].with_logprobs = true;
    jobs[2].n_logprobs = 20;
    jobs[4].n_logprobs = 2;
    const auto found = run_jobs(*engine, jobs);
    for (size_t i = 0; i < jobs.size(); ++i) {
        EXPECT_EQ(found[i].tokens, silent[i].tokens) << i;
        if (jobs[i].with_logprobs) expect_same(found[i], run_job(*engine, jobs[i]), std::to_string(i));
        else { EXPECT_TRUE(found[i].logprobs.empty()) << i; }
    }
}

// Every way to end within a block of accepted drafts: limits, the context, end tokens, stop texts.
TEST(Logprobs, end_with_the_tokens) {
    EngineDesc desc = bundled_pair(2, 120);
    desc.draft_path = desc.target_path; // every draft is accepted
    auto engine = make_engine(desc);
    ASSERT_TRUE(engine);
    const std::vector<uint32_t> prompt = engine->tokenize("One day, Tom and Lily went to the park.", true).value();
    const Job plain = {.prompt = prompt, .max_tokens = 60, .with_logprobs = true, .n_logprobs = 2};
    const uint64_t id = engine->create_sequence(plain.request()).value();
    drive(*engine);
    const Answer expected = answer_of(*engine, id);
    const std::string text = find_sequence(*engine, id)->text;
    ASSERT_TRUE(destroy_sequence(*engine, id).ok());
    size_t within = 0;
    auto expect_begin = [&](const Job& job, StopReason stop, const std::string& what) {
        const Answer found = run_job(*engine, job);
        EXPECT_EQ(found.stop, stop) << what;
        ASSERT_LE(found.tokens.size(), expected.tokens.size()) << what;
        Answer begin = expected;
        begin.tokens.resize(found.tokens.size());
        begin.logprobs.resize(found.tokens.size());
        expect_same(found, begin, what);
        within += found.tokens.size() % (job.draft_len + 1) != 0 ? 1 : 0;
    };
    for (const uint32_t draft_len : {3u, 8u}) {
        Job job = plain;
        job.draft_len = draft_len;
        for (uint32_t n : {1u, 5u, 14u, 23u}) {
            job.max_tokens = n;
            expect_begin(job, StopReason::length, "max_tokens " + std::to_string(n));
        }
        job.max_tokens = 60;
        for (auto [at, n] : {std::pair<size_t, size_t>{31, 1}, {60, 3}, {87, 9}, {120, 24}, {5, 2}}) {
            job.stop_texts = {text.substr(at, n)};
            expect_begin(job, StopReason::text, "stop text " + job.stop_texts[0]);
        }
        if (HasFatalFailure()) return;
    }
    EXPECT_GT(within, 8u) << "hardly a round was cut";
    Job full = {.prompt = random_prompt(110, 4096, 1), .draft_len = 8, .with_logprobs = true};
    const Answer to_the_end = run_job(*engine, full);
    EXPECT_EQ(to_the_end.stop, StopReason::context);
    EXPECT_EQ(to_the_end.tokens.size(), 10u);
    expect_in_step(to_the_end, 0, "to the end of the context");
    Job ended = plain;
    ended.ignore_eos = false;
    ended.draft_len = 8;
    for (uint32_t end : engine->end_ids()) ended.transforms.biases.push_back({end, 100.0f});
    const Answer at_once = run_job(*engine, ended);
    EXPECT_EQ(at_once.stop, StopReason::eos);
    ASSERT_EQ(at_once.tokens.size(), 1u);
    expect_in_step(at_once, 2, "an end token");
    EXPECT_LT(at_once.logprobs[0].token.logprob, at_once.logprobs[0].best[1].logprob);
}

SequenceRequest asking(std::vector<uint32_t> prompt, uint32_t max_tokens, uint32_t draft_len, std::optional<uint32_t> n_logprobs) {
    return Job{.prompt = std::move(prompt), .max_tokens = max_tokens, .draft_len = draft_len, .with_logprobs = n_logprobs.has_value(), .n_logprobs = n_logprobs.value_or(0)}.request();
}

// Parts ask or do not; what was not taken stays before what follows. A fork has its own.
TEST(Logprobs, follow_a_sequence_that_goes_on) {
    auto engine = make_engine(random_pair(3));
    ASSERT_TRUE(engine);
    for (const uint32_t draft_len : {0u, 4u}) {
        const Answer whole = run_job(*engine, {.prompt = {7, 8, 9}, .max_tokens = 60, .with_logprobs = true, .n_logprobs = 6});
        const uint64_t id = engine->create_sequence(asking({7, 8, 9}, kHoldTokens, draft_len, 6)).value();
        drive(*engine);
        LiveSequence& sequence = *find_sequence(*engine, id);
        EXPECT_TRUE(sequence.logprobs.empty());
        ASSERT_TRUE(engine->append_sequence(id, asking({}, 10, draft_len, 6)).ok());
        drive(*engine);
        ASSERT_EQ(sequence.logprobs.size(), 10u);
        ASSERT_TRUE(engine->append_sequence(id, asking({}, 5, draft_len, std::nullopt)).ok());
        drive(*engine);
        ASSERT_EQ(sequence.logprobs.size(), 10u);
        const uint64_t quiet = engine->fork_sequence(id, asking({}, 20, draft_len, std::nullopt)).value();
        const uint64_t fork = engine->fork_sequence(id, asking({}, 20, draft_len, 1)).value();
        drive(*engine);
        EXPECT_TRUE(find_sequence(*engine, quiet)->logprobs.empty());
        const auto& of_fork = find_sequence(*engine, fork)->logprobs;
        ASSERT_EQ(of_fork.size(), 20u);
        ASSERT_TRUE(engine->append_sequence(id, asking({}, 45, draft_len, 6)).ok());
        drive(*engine);
        ASSERT_EQ(sequence.logprobs.size(), 55u);
        for (uint32_t i = 0; i < 60; ++i) {
            if (i >= 10 && i < 15) continue; // that part did not ask
            ASSERT_TRUE(is_same(sequence.logprobs[i < 10 ? i : i - 5], whole.logprobs[i])) << "token " << i << ", draft_len " << draft_len;
        }
        for (uint32_t i = 0; i < 20; ++i) {
            EXPECT_EQ(of_fork[i].n_best, 1u);
            EXPECT_TRUE(is_same(of_fork[i].token, whole.logprobs[15 + i].token) && is_same(of_fork[i].best[0], whole.logprobs[15 + i].best[0])) << "token " << i;
        }
        for (uint64_t one : {id, quiet, fork}) ASSERT_TRUE(destroy_sequence(*engine, one).ok());
    }
}

// One that is cancelled and goes on: rounds that were under way say nothing, whatever they were asked.
TEST(Logprobs, of_rounds_from_before_an_append_are_not_taken) {
    auto engine = make_engine(random_pair(1));
    ASSERT_TRUE(engine);
    for (const bool asks_first : {true, false}) {
        const uint64_t id = engine->create_sequence(asking({1, 2, 3}, 80, 4, asks_first ? std::optional(3u) : std::nullopt)).value();
        drive(*engine, [&] { return find_sequence(*engine, id)->n_generated() > 6; });
        ASSERT_TRUE(cancel_sequence(*engine, id).ok());
        const size_t n = find_sequence(*engine, id)->n_generated();
        ASSERT_TRUE(engine->append_sequence(id, asking({5}, 20, 4, asks_first ? std::nullopt : std::optional(3u))).ok());
        drive(*engine);
        const LiveSequence& sequence = *find_sequence(*engine, id);
        ASSERT_EQ(sequence.logprobs.size(), asks_first ? n : 20);
        for (size_t i = 0; i < sequence.logprobs.size(); ++i) EXPECT_EQ(sequence.logprobs[i].token.id, sequence.output[asks_first ? i : n + i].id);
        ASSERT_TRUE(destroy_sequence(*engine, id).ok());
    }
}

// Without anybody who asks, rounds are recorded as if there were no log-probabilities: greedy ones keep no logits.
TEST(Logprobs, are_no_part_of_rounds_that_nobody_asks) {
    RoundForm form = empty_round();
    add_to_round(form, asking({1}, 1, 4, std::nullopt));
    EXPECT_FALSE(form.logprobs);
    EXPECT_FALSE(form.keeps_target_logits());
    const RoundForm without = form;
    add_to_round(form, asking({1}, 1, 4, 0));
    EXPECT_TRUE(form.logprobs);
    EXPECT_TRUE(form.keeps_target_logits());
    EXPECT_EQ(form.logits_use, LogitsUse::largest) << "the draft's need not be kept";
    RoundForm joined = without;
    join_sampling(joined, form);
    EXPECT_TRUE(joined.logprobs);

    auto engine = make_engine(random_pair(2));
    ASSERT_TRUE(engine);
    auto has = [&](const char* variant) { return engine->kernels().has(kernel_id<ops::LogprobsRows>({.constants = {engine->tuning().lanes}, .variant = variant, .has_subgroup_variant = true})); };
    run_jobs(*engine, {{.prompt = {1, 2}, .max_tokens = 10, .draft_len = 2}, {.prompt = {1, 2}, .max_tokens = 10, .temperature = 1, .transforms = {.repeat_penalty = 1.1f}}});
    EXPECT_FALSE(has(""));
    run_job(*engine, {.prompt = {1, 2}, .max_tokens = 10, .draft_len = 2, .with_logprobs = true});
    EXPECT_TRUE(has(""));
}

// A vocabulary of fewer tokens than were asked for is told whole.
TEST(Logprobs, of_a_small_vocabulary_are_all_there_are) {
    EngineDesc desc;
    desc.target_synthetic = random_model({.vocab = 9}, 1);
    desc.max_context = 40;
    auto engine = make_engine(desc);
    ASSERT_TRUE(engine);
    const Answer answer = run_job(*engine, {.prompt = {3}, .max_tokens = 20, .temperature = 1, .with_logprobs = true, .n_logprobs = 20});
    expect_in_step(answer, 9, "all");
    for (const TokenLogprobs& of : answer.logprobs) {
        double sum = 0;
        for (uint32_t i = 0; i < of.n_best; ++i) sum += std::exp(double(of.best[i].logprob));
        EXPECT_NEAR(sum, 1, 1e-5);
    }
}

// A target whose logits are no numbers: no distribution, or all but one token's.
TEST(Logprobs, of_what_is_no_number_are_none) {
    class Damaged : public Checkpoint {
      public:
        Damaged(std::string tensor, uint64_t first, uint64_t n)
            : model_(make_synthetic_checkpoint(random_model({.d = 32, .layers = 1, .ffn = 48, .vocab = 4096, .scale = 0.3f}, 1)).value()), tensor_(std::move(tensor)), first_(first), n_(n) {}
        const LlamaConfig& config() const override { return model_->config(); }
        const std::string& name() const override { return model_->name(); }
        const TensorInfo* find(std::string_view name) const override { return model_->find(name); }
        Status read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const override {
            AUSPEX_TRY(model_->read(tensor, offset, out)); // whole tensors of f32
            if (tensor.name == tensor_) std::fill_n(reinterpret_cast<float*>(out.data()) + first_, n_, NAN);
            return ok_status();
        }

      private:
        std::unique_ptr<Checkpoint> model_;
        std::string tensor_;
        uint64_t first_, n_;
    };
    for (const bool is_all : {true, false}) {
        TempFolder folder;
        write_huggingface(folder, is_all ? Damaged("model.norm.weight", 3, 1) : Damaged("lm_head.weight", 7 * 32, 32));
        std::filesystem::copy_file(std::string(AUSPEX_PAIR_DIR) + "/target/tokenizer.model", folder.file("tokenizer.model"));
        EngineDesc desc;
        desc.target_path = folder.path();
        desc.max_context = 64;
        auto engine = make_engine(desc);
        ASSERT_TRUE(engine);
        for (const float temperature : {0.0f, 1.0f}) {
            const Answer answer = run_job(*engine, {.prompt = {5, 7}, .max_tokens = 12, .draft_len = 4, .temperature = temperature, .drafter = DrafterChoice::ngram, .with_logprobs = true, .n_logprobs = 20});
            expect_in_step(answer, 20, "not finite");
            EXPECT_EQ(answer.stats.n_not_finite, is_all ? 12u : 0u);
            for (const TokenLogprobs& of : answer.logprobs) {
                EXPECT_EQ(std::isnan(of.token.logprob), is_all);
                for (uint32_t i = 0; i < of.n_best; ++i) EXPECT_EQ(std::isnan(of.best[i].logprob), is_all);
            }
        }
    }
}

TEST(Logprobs, that_cannot_be_had_are_refused) {
    auto engine = make_engine(random_pair(1));
    ASSERT_TRUE(engine);
    struct Case {
        uint32_t with, n;
        const char* message; // empty: it is fine
    };
    for (const Case& one : {Case{0, 0, ""}, {1, 0, ""}, {1, 20, ""}, {1, 21, "n_logprobs is 21, expected at most 20"}, {2, 0, "with_logprobs is 2, expected 0 or 1"},
                            {0, 1, "n_logprobs is 1 and with_logprobs 0, expected with_logprobs to be 1"}}) {
        SequenceRequest request = asking({1}, 1, 0, std::nullopt);
        request.with_logprobs = one.with;
        request.n_logprobs = one.n;
        auto made = engine->create_sequence(request);
        EXPECT_EQ(made.ok(), *one.message == 0);
        if (made.ok()) {
            ASSERT_TRUE(destroy_sequence(*engine, made.value()).ok());
            continue;
        }
        EXPECT_EQ(made.status().code(), Code::invalid_argument);
        EXPECT_EQ(made.status().message(), one.message);
    }
}

} // namespace
} // namespace auspex::logprobs_test
