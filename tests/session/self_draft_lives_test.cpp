// What befalls sequences that draft by a copy of the target: stop texts, parking, log-probabilities, truncated distributions. All is
// that of an engine that has no copy. And `auto` with a copy alone is never slower.
#include "session/prompts.h"
#include "session/same_answer.h"
#include "session/self_draft.h"
#include "session/speculation_beds.h"

namespace auspex::self_draft_lives_test {
namespace {

using namespace test;
using namespace test::self_drafts;

EngineDesc bundled_target(SelfDraft self, uint32_t slots) {
    EngineDesc desc = bundled_pair(slots, 200);
    desc.draft_path.clear();
    desc.self_draft = self;
    return desc;
}

TEST(SelfDraftLives, stop_texts_end_the_answer_before_them) {
    auto engine = make_engine(bundled_target(SelfDraft::q4_0, 1)), alone = make_engine(bundled_target(SelfDraft::none, 1));
    ASSERT_TRUE(engine && alone);
    Job job = {.prompt = alone->tokenize("One day, Tom and Lily went to the park.", true).value(), .max_tokens = 60, .acceptance = AcceptanceRule::coupled};
    const auto told = [](Engine& by, const Job& one) {
        const uint64_t id = by.create_sequence(one.request()).value();
        drive(by);
        std::pair said{answer_of(by, id), find_sequence(by, id)->text};
        EXPECT_TRUE(destroy_sequence(by, id).ok());
        return said;
    };
    uint32_t accepted = 0;
    for (const float temperature : {0.0f, 0.8f}) {
        job.temperature = temperature;
        job.draft_len = 0, job.drafter = DrafterChoice::none, job.stop_texts = {};
        const auto [plain, whole] = told(*alone, job);
        ASSERT_GT(whole.size(), 120u);
        for (const auto& [at, n] : {std::pair<size_t, size_t>{31, 1}, {60, 3}, {87, 9}, {5, 2}})
            for (const uint32_t draft_len : {1u, 4u, 8u}) {
                job.stop_texts = {"never said", whole.substr(at, n)};
                job.draft_len = draft_len, job.drafter = DrafterChoice::self;
                const auto [answer, text] = told(*engine, job);
                EXPECT_EQ(text, whole.substr(0, whole.find(job.stop_texts[1]))) << "stop text \"" << job.stop_texts[1] << "\"";
                EXPECT_EQ(answer.stop, StopReason::text);
                ASSERT_LE(answer.tokens.size(), plain.tokens.size());
                EXPECT_TRUE(std::equal(answer.tokens.begin(), answer.tokens.end(), plain.tokens.begin()));
                EXPECT_LT(answer.stats.draft_n_accepted, answer.tokens.size() + 1) << "drafts after the stop do not count";
                accepted += answer.n_of(TokenOrigin::accepted);
            }
    }
    EXPECT_GT(accepted, 50u);
}

// Its rows are given up with whatever drafts are in them; when it comes back it goes on as if nothing had been.
TEST(SelfDraftLives, parking_changes_no_text) {
    auto engine = make_engine(with_copy(SelfDraft::q4_0, 2, DType::q8_0)), alone = make_engine(with_copy(SelfDraft::none, 2, DType::q8_0));
    ASSERT_TRUE(engine && alone);
    Sum sum;
    for (const float temperature : {0.0f, 0.8f}) {
        std::vector<Job> plain = jobs_of(3, 0, temperature), drafted = jobs_of(3, 4, temperature);
        for (std::vector<Job>* jobs : {&plain, &drafted})
            for (Job& job : *jobs) job.with_logprobs = true;
        const std::vector<Answer> expected = run_jobs(*alone, plain);
        for (size_t i = 0; i < drafted.size(); ++i)
            for (const uint32_t at_round : {1u, 2u, 7u}) {
                const size_t beside = (i + 1) % drafted.size();
                const uint64_t id = engine->create_sequence(drafted[i].request()).value(), other = engine->create_sequence(drafted[beside].request()).value();
                drive(*engine, [&] { return find_sequence(*engine, id)->stats.rounds >= at_round; });
                ASSERT_TRUE(engine->admission().park(id).ok());
                drive(*engine);
                EXPECT_EQ(find_sequence(*engine, id)->stop, StopReason::none);
                ASSERT_TRUE(engine->admission().resume(id).ok());
                drive(*engine);
                expect_same(answer_of(*engine, id), expected[i], "parked at round " + std::to_string(at_round));
                expect_same(answer_of(*engine, other), expected[beside], "beside it");
                sum.add(answer_of(*engine, id).stats);
                ASSERT_TRUE(destroy_sequence(*engine, id).ok() && destroy_sequence(*engine, other).ok());
            }
    }
    EXPECT_GT(sum.rounds, 100u);
    EXPECT_LT(sum.accepted, sum.drafted);
}

TEST(SelfDraftLives, logprobs_are_those_of_plain_decoding) {
    auto engine = make_engine(with_copy(SelfDraft::q4_0, 4)), alone = make_engine(with_copy(SelfDraft::none, 4));
    ASSERT_TRUE(engine && alone);
    const SamplingParams edits = {.repeat_penalty = 1.3f, .presence_penalty = 0.4f, .frequency_penalty = 0.2f, .top_k = 40, .top_p = 0.9f, .biases = {{11, -INFINITY}, {30, 2.0f}}};
    for (const float temperature : {0.0f, 0.9f})
        for (const bool is_edited : {false, true}) {
            std::vector<Job> plain = jobs_of(4, 0, temperature), drafted = jobs_of(4, 5, temperature);
            for (std::vector<Job>* jobs : {&plain, &drafted})
                for (Job& job : *jobs) {
                    job.with_logprobs = true;
                    job.n_logprobs = 5;
                    if (is_edited) job.transforms = edits;
                }
            const std::vector<Answer> expected = run_jobs(*alone, plain), found = run_jobs(*engine, drafted);
            for (size_t i = 0; i < found.size(); ++i) {
                EXPECT_GT(found[i].stats.draft_n, 10u);
                expect_same(found[i], expected[i], "temperature " + std::to_string(temperature) + ", job " + std::to_string(i));
            }
        }
}

// Draft and target are cut at the same tokens, where their logits are the same.
TEST(SelfDraftLives, equal_weights_are_always_accepted_where_both_are_truncated) {
    auto engine = make_engine(with_copy(SelfDraft::as_is, 4));
    ASSERT_TRUE(engine);
    std::vector<SamplingParams> kinds(4);
    kinds[0].top_k = 5;
    kinds[1].top_p = 0.7f;
    kinds[2].min_p = 0.1f;
    kinds[3] = {.repeat_penalty = 1.2f, .presence_penalty = 0.3f, .frequency_penalty = 0.1f, .top_k = 12, .top_p = 0.9f, .min_p = 0.02f, .biases = {{5, 1.0f}, {7, -INFINITY}}};
    for (const SamplingParams& kind : kinds)
        for (const AcceptanceRule rule : {AcceptanceRule::rejection, AcceptanceRule::coupled}) {
            std::vector<Job> jobs = jobs_of(4, 5, 1.1f);
            for (Job& job : jobs) job.transforms = kind, job.acceptance = rule;
            for (const Answer& answer : run_jobs(*engine, jobs)) {
                EXPECT_GT(answer.stats.draft_n, 30u);
                EXPECT_EQ(answer.stats.draft_n_accepted, answer.stats.draft_n) << "top_k " << kind.top_k << ", top_p " << kind.top_p << ", min_p " << kind.min_p << ", rule " << static_cast<int>(rule);
            }
        }
}

// With -m alone: the copy and the text itself may draft, on every simulated device, from the first text on. The copy may be useless, and
// the text repeat nothing.
TEST(SelfDraftLives, auto_is_never_slower_with_a_copy_alone) {
    constexpr uint64_t kSeeds = 8;
    std::vector<simulated::Bed> beds = simulated::beds();
    beds.push_back(simulated::h100());
    beds.back().prior.draft_bytes = 1'807'000'000, beds.back().prior.draft_stages = 143, beds.back().device.c = 0.6;
    for (const simulated::Bed& bed : beds)
        for (const double alpha : {0.05, 0.3, 0.8, 0.95}) {
            double first = 0, last = 0;
            for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
                simulated::Engine engine(bed.prior);
                simulated::Machine machine(bed.device, seed);
                for (int i = 0; i < 6; ++i) {
                    const double one = machine.decode(engine, simulated::text_of(alpha), 256, {.proposals = true, .shares_cache = true}).speed() / kSeeds;
                    if (i == 0) first += one;
                    if (i == 5) last += one;
                }
            }
            EXPECT_GE(first, 0.97) << bed.device.name << ", alpha " << alpha;
            EXPECT_GE(last, 0.97) << bed.device.name << ", alpha " << alpha;
        }
}

} // namespace
} // namespace auspex::self_draft_lives_test
