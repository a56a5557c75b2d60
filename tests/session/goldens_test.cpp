// The bundled models against an independent implementation (PyTorch, float64, BF16 weights): the largest logits at the end
// of a prompt, and greedy tokens as far as their margins say more than rounding does.
#include "session/gpu_contents.h"
#include "session/prompts.h"

#include <cmath>

namespace auspex {
namespace {

using namespace test;

struct GoldenCase {
    const char* model;
    DType cache;
};
// What rounding may do to a logit. f32 arithmetic over 8 layers was seen to leave errors of 5e-6 in logits of size 15; an
// f16 cache rounds every key and value to 2^-11, and some hundred roundings of random sign meet in a logit: 3e-3 was
// seen. Other devices have other exp and other reduction trees.
double logit_tolerance(DType cache) {
    return cache == DType::q8_0 ? 0.3 : cache == DType::f16 ? 1e-2 : 1e-4;
}
// Above this margin rounding cannot change the winner (the pair's README).
double token_margin(DType cache) {
    return cache == DType::q8_0 ? 0.6 : cache == DType::f16 ? 2e-2 : 2e-3;
}

class Goldens : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(Goldens, logits_and_greedy_tokens) {
    EngineDesc desc;
    desc.target_path = std::string(AUSPEX_PAIR_DIR) + "/" + GetParam().model;
    desc.max_sequences = 8;
    desc.max_context = 160;
    desc.cache_dtype = GetParam().cache;
    auto engine = make_engine(desc);
    ASSERT_TRUE(engine);
    const double tolerance = logit_tolerance(GetParam().cache), margin = token_margin(GetParam().cache);
    const auto goldens = read_goldens();
    ASSERT_EQ(goldens.size(), 12u);
    std::vector<Job> jobs;
    double worst = 0;
    for (const auto& golden : goldens) {
        const auto ids = golden["ids"].get<std::vector<uint32_t>>();
        EXPECT_EQ(engine->tokenize(golden["prompt"].get<std::string>(), true).value(), ids);
        const auto& last = golden[GetParam().model]["last_prompt_logits"];
        run_job(*engine, {.prompt = ids, .max_tokens = 1});
        const auto logits = last_logits(*engine);
        for (size_t i = 0; i < 16; ++i) {
            const double error = std::abs(static_cast<double>(logits[last["id"][i].get<uint32_t>()]) - last["logit"][i].get<double>());
            EXPECT_LE(error, tolerance) << golden["prompt"] << ", logit " << i;
            worst = std::max(worst, error);
        }
        // Nothing else is larger.
        const double smallest = last["logit"][15].get<double>();
        EXPECT_LE(std::count_if(logits.begin(), logits.end(), [&](float x) { return static_cast<double>(x) > smallest + tolerance; }), 15);
        jobs.push_back({.prompt = ids, .max_tokens = 64});
    }
    const auto answers = run_jobs(*engine, jobs);
    uint32_t compared = 0;
    for (size_t i = 0; i < jobs.size(); ++i) {
        const auto& golden = goldens[i][GetParam().model];
        for (size_t t = 0; t < 64 && golden["margins"][t].get<double>() > margin; ++t, ++compared)
            ASSERT_EQ(answers[i].tokens[t], golden["greedy"][t].get<uint32_t>()) << goldens[i]["prompt"] << ", token " << t;
    }
    EXPECT_GT(compared, 12u * 64u * 2u / 5u);
    RecordProperty("worst_logit_error", std::to_string(worst));
    RecordProperty("tokens_compared", static_cast<int>(compared));
    std::printf("%s: worst logit error %.2e, %u tokens compared\n", GetParam().model, worst, compared);
}

INSTANTIATE_TEST_SUITE_P(model, Goldens,
                         ::testing::Values(GoldenCase{"target", DType::f16}, GoldenCase{"target", DType::f32}, GoldenCase{"draft", DType::f16},
                                           GoldenCase{"draft", DType::f32}, GoldenCase{"target", DType::q8_0}, GoldenCase{"draft", DType::q8_0}),
                         [](const auto& at) { return std::string(at.param.model) + "_" + std::string(dtype_name(at.param.cache)); });

} // namespace
} // namespace auspex
