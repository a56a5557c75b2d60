// Scores: logits of known tokens, the same in chunks of any size and as when the tokens were generated, near an
// independent implementation's, in a slot that is given back.
#include "session/gpu_contents.h"
#include "session/prompts.h"

#include <cmath>

namespace auspex::score_test {
namespace {

using namespace test;

std::vector<std::vector<float>> score(Engine& engine, const std::vector<uint32_t>& tokens, uint32_t chunk) {
    std::vector<std::vector<float>> rows;
    const Status status = engine.score(tokens, [&](uint32_t row, std::span<const float> logits) {
        EXPECT_EQ(row, rows.size());
        rows.emplace_back(logits.begin(), logits.end());
    }, chunk);
    EXPECT_TRUE(status.ok()) << status.message();
    return rows;
}

EngineDesc pair(uint32_t slots, uint32_t context) {
    const Shape shape = {.d = 72, .layers = 2, .heads = 3, .ffn = 100, .vocab = 203, .scale = 0.3f};
    EngineDesc desc;
    desc.target_synthetic = random_model(shape, 5);
    desc.draft_synthetic = random_model(shape, 6);
    desc.max_sequences = slots;
    desc.max_context = context;
    desc.adjust_tuning = [](Tuning& tuning) { tuning.prompt_by_rows = false; };
    return desc;
}

TEST(Score, chunks_change_no_bit_and_generation_saw_the_same) {
    auto engine = make_engine(pair(2, 150));
    ASSERT_TRUE(engine);
    // One prompt token: every row of this sequence was made by the row family, as scores are.
    const Answer answer = run_job(*engine, {.prompt = {7}, .max_tokens = 100, .transforms = keeping_logits()});
    const std::vector<float> seen = last_logits(*engine); // of the row that gave the last token
    std::vector<uint32_t> tokens = {7};
    tokens.insert(tokens.end(), answer.tokens.begin(), answer.tokens.end());
    const auto rows = score(*engine, tokens, 16);
    ASSERT_EQ(rows.size(), tokens.size());
    for (size_t i = 0; i + 1 < rows.size(); ++i)
        ASSERT_EQ(std::max_element(rows[i].begin(), rows[i].end()) - rows[i].begin(), tokens[i + 1]) << "token " << i + 1;
    EXPECT_EQ(rows[rows.size() - 2], seen);
    for (uint32_t chunk : {1u, 5u, 40u, 1000u}) EXPECT_TRUE(score(*engine, tokens, chunk) == rows) << chunk;
}

TEST(Score, log_probabilities_are_a_distribution) {
    std::vector<float> logits = {1.0f, -2.0f, 88.5f, 88.0f, -1000.0f};
    double total = 0;
    for (uint32_t i = 0; i < logits.size(); ++i) total += std::exp(log_probability(logits, i));
    EXPECT_NEAR(total, 1.0, 1e-12);
    EXPECT_NEAR(log_probability(logits, 2) - log_probability(logits, 3), 0.5, 1e-12);
    EXPECT_NEAR(log_probability(logits, 4), -1088.5 - std::log(1 + std::exp(-0.5)), 1e-9);
}

TEST(Score, logits_are_the_goldens) {
    EngineDesc desc = bundled_pair(1, 160);
    desc.draft_path.clear();
    auto engine = make_engine(desc);
    ASSERT_TRUE(engine);
    const auto goldens = read_goldens();
    for (size_t g : {size_t{0}, size_t{5}, size_t{11}}) {
        auto tokens = goldens[g]["ids"].get<std::vector<uint32_t>>();
        const auto& last = goldens[g]["target"]["last_prompt_logits"];
        const auto rows = score(*engine, tokens, 16);
        for (size_t i = 0; i < 16; ++i)
            EXPECT_NEAR(static_cast<double>(rows.back()[last["id"][i].get<uint32_t>()]), last["logit"][i].get<double>(), 1e-2) << g; // f16 cache, see goldens_test.cpp
    }
}

// Sequences that run meanwhile say what they would have said, and their unread rounds are not lost.
TEST(Score, comes_between_the_rounds_of_others) {
    auto engine = make_engine(pair(2, 200));
    ASSERT_TRUE(engine);
    const uint32_t all_pages = engine->target().cache().n_free_pages();
    const Job job = {.prompt = random_prompt(40, 203, 1), .max_tokens = 60, .draft_len = 4};
    const Answer alone = run_job(*engine, job);
    const auto tokens = random_prompt(200, 203, 2); // the whole context
    const auto expected = score(*engine, tokens, 16);
    for (double budget_ms : {-1.0, 0.001}) {
        const uint64_t id = engine->create_sequence(job.request()).value();
        uint32_t n = 0;
        drive(*engine, [&] {
            if (n++ % 4 == 0) { EXPECT_TRUE(score(*engine, tokens, 16) == expected); }
            return find_sequence(*engine, id)->stop != StopReason::none || ::testing::Test::HasFailure();
        }, budget_ms);
        EXPECT_EQ(answer_of(*engine, id).tokens, alone.tokens);
        ASSERT_TRUE(destroy_sequence(*engine, id).ok());
        drive(*engine);
        EXPECT_EQ(engine->target().cache().n_free_pages(), all_pages);
    }
}

TEST(Score, refusals) {
    auto engine = make_engine(pair(1, 64));
    ASSERT_TRUE(engine);
    auto none = [](uint32_t, std::span<const float>) { ADD_FAILURE() << "a row of a refused call"; };
    EXPECT_EQ(engine->score({}, none).code(), Code::invalid_argument);
    EXPECT_EQ(engine->score(std::vector<uint32_t>{203}, none).code(), Code::invalid_argument);
    EXPECT_EQ(engine->score(std::vector<uint32_t>(65, 1), none).code(), Code::capacity);
    const uint64_t id = engine->create_sequence({{1, 2}, 3, {}, 2, true}).value();
    EXPECT_EQ(engine->score(std::vector<uint32_t>{1}, none).code(), Code::capacity); // the only slot is taken
    ASSERT_TRUE(destroy_sequence(*engine, id).ok());
    EXPECT_EQ(score(*engine, {1}, 16).size(), 1u);
}

} // namespace
} // namespace auspex::score_test
