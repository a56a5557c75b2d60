// Models whose logits are no numbers, through the whole engine: such a draft costs time and changes no token, such a target gives one
// text whatever drafts, and is told of.
#include "model/model_files.h"
#include "session/engine_fixture.h"

#include <cmath>
#include <filesystem>

namespace auspex::not_finite_test {
namespace {

using namespace test;

constexpr uint32_t kTokens = 4096; // of the bundled tokenizer

// A model with one value of one tensor, or all of one row of a matrix, replaced.
class Damaged : public Checkpoint {
  public:
    struct Place {
        std::string tensor;
        uint64_t first, n;
        float value;
    };
    Damaged(uint64_t seed, Place place)
        : model_(make_synthetic_checkpoint(random_model({.d = 32, .layers = 1, .ffn = 48, .vocab = kTokens, .scale = 0.3f}, seed)).value()), place_(std::move(place)) {}
    const LlamaConfig& config() const override { return model_->config(); }
    const std::string& name() const override { return model_->name(); }
    const TensorInfo* find(std::string_view name) const override { return model_->find(name); }
    Status read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const override {
        AUSPEX_TRY(model_->read(tensor, offset, out)); // whole tensors of f32
        if (tensor.name == place_.tensor) std::fill_n(reinterpret_cast<float*>(out.data()) + place_.first, place_.n, place_.value);
        return ok_status();
    }

  private:
    std::unique_ptr<Checkpoint> model_;
    Place place_;
};

const Damaged::Place kNone = {"", 0, 0, 0};
// Every logit NaN, in two ways; and that of one token.
const Damaged::Place kAllNan[] = {{"model.norm.weight", 3, 1, NAN}, {"model.norm.weight", 0, 32, INFINITY}};
const Damaged::Place kOneNan = {"lm_head.weight", 7 * 32, 32, NAN};

struct Pair {
    TempFolder target, draft;
    std::unique_ptr<Engine> engine;
    Pair(const Damaged::Place& of_target, const Damaged::Place& of_draft) {
        write(target, Damaged(1, of_target));
        write(draft, Damaged(2, of_draft));
        EngineDesc desc;
        desc.target_path = target.path();
        desc.draft_path = draft.path();
        desc.max_sequences = 4;
        desc.max_context = 64;
        engine = make_engine(desc);
    }
    static void write(const TempFolder& folder, const Checkpoint& model) {
        write_huggingface(folder, model);
        std::filesystem::copy_file(std::string(AUSPEX_PAIR_DIR) + "/target/tokenizer.model", folder.file("tokenizer.model"));
    }
};

// Greedy, coupled, by rejection, with penalties, truncated: as plain rounds, then with model drafts and n-grams.
std::vector<Job> jobs_of(uint64_t seed, bool may_be_lenient) {
    Job greedy = {.prompt = random_prompt(9, kTokens, seed), .max_tokens = 24, .seed = seed};
    Job sampled = greedy, coupled = greedy, truncated = greedy, edited = greedy, lenient = greedy;
    sampled.temperature = coupled.temperature = truncated.temperature = lenient.temperature = 1;
    coupled.acceptance = AcceptanceRule::coupled;
    truncated.transforms.top_k = 40;
    truncated.transforms.top_p = 0.9f;
    edited.transforms.repeat_penalty = 1.1f;
    lenient.transforms.lenience = 0.5f;
    std::vector<Job> jobs = {greedy, sampled, coupled, truncated, edited};
    if (may_be_lenient) jobs.push_back(lenient);
    return jobs;
}
Job drafted(Job job, DrafterChoice drafter) {
    job.draft_len = 3;
    job.drafter = drafter;
    return job;
}

// All drafts of sampled text are rejected, so every token is drawn as a plain round draws it: the same noise, the same text.
TEST(NotFinite, a_draft_changes_no_token) {
    for (const Damaged::Place& place : kAllNan) {
        Pair pair(kNone, place);
        ASSERT_TRUE(pair.engine);
        for (uint64_t seed = 1; seed <= 3; ++seed)
            for (const Job& job : jobs_of(seed, true)) {
                const Answer plain = run_job(*pair.engine, job), answer = run_job(*pair.engine, drafted(job, DrafterChoice::model));
                EXPECT_EQ(answer.tokens, plain.tokens) << "seed " << seed << ", temperature " << job.temperature;
                EXPECT_GT(answer.stats.draft_n, 20u);
                EXPECT_EQ(answer.stats.n_not_finite, 0u);
                if (job.temperature == 0) continue;
                if (job.acceptance == AcceptanceRule::rejection) { EXPECT_EQ(answer.stats.draft_n_accepted, 0u); }
                EXPECT_TRUE(std::isfinite(answer.stats.overlap) && answer.stats.overlap < 0.2 * answer.stats.n_tested);
            }
    }
}

// It is seen to be useless, and left alone.
TEST(NotFinite, automatic_drafts_end) {
    Pair pair(kNone, kAllNan[0]);
    ASSERT_TRUE(pair.engine);
    Job job = {.prompt = random_prompt(9, kTokens, 1), .max_tokens = 50, .draft_len = kAutoDraftLen, .temperature = 1, .drafter = DrafterChoice::automatic};
    const Answer answer = run_job(*pair.engine, job);
    EXPECT_EQ(answer.stats.draft_n_accepted, 0u);
    EXPECT_LT(answer.stats.draft_n, 12u);
}

// One NaN in a row is a token that the draft never says.
TEST(NotFinite, one_logit_of_a_draft_takes_one_token_from_it) {
    Pair pair(kNone, kOneNan);
    ASSERT_TRUE(pair.engine);
    for (const Job& job : jobs_of(1, false)) {
        const Answer plain = run_job(*pair.engine, job), answer = run_job(*pair.engine, drafted(job, DrafterChoice::model));
        if (job.temperature == 0 || job.acceptance == AcceptanceRule::coupled) { EXPECT_EQ(answer.tokens, plain.tokens); }
        EXPECT_TRUE(std::isfinite(answer.stats.overlap) && answer.stats.overlap <= answer.stats.n_tested);
        EXPECT_EQ(answer.stats.n_not_finite, 0u);
    }
}

TEST(NotFinite, a_targets_text_is_the_same_whoever_drafts) {
    for (const Damaged::Place& place : kAllNan) {
        Pair pair(place, kNone);
        ASSERT_TRUE(pair.engine);
        for (const Job& job : jobs_of(1, true)) {
            const Answer plain = run_job(*pair.engine, job);
            EXPECT_EQ(plain.tokens, std::vector<uint32_t>(job.max_tokens));
            EXPECT_EQ(plain.stats.n_not_finite, job.max_tokens);
            for (DrafterChoice drafter : {DrafterChoice::model, DrafterChoice::ngram, DrafterChoice::hybrid}) {
                const Answer answer = run_job(*pair.engine, drafted(job, drafter));
                EXPECT_EQ(answer.tokens, plain.tokens);
                EXPECT_EQ(answer.stats.n_not_finite, job.max_tokens);
                EXPECT_TRUE(std::isfinite(answer.stats.overlap) && answer.stats.overlap <= answer.stats.n_tested);
            }
        }
    }
    Pair one(kOneNan, kNone);
    ASSERT_TRUE(one.engine);
    for (const Job& job : jobs_of(1, true))
        for (const Answer& answer : {run_job(*one.engine, job), run_job(*one.engine, drafted(job, DrafterChoice::model))}) {
            EXPECT_EQ(std::count(answer.tokens.begin(), answer.tokens.end(), 7u), 0);
            EXPECT_EQ(answer.stats.n_not_finite, 0u);
        }
}

} // namespace
} // namespace auspex::not_finite_test
