// Measuring passes and memory changes nothing that sequences see, and its figures fit together; a simulated acceptance accepts as
// often as it was told to; weights made on the device run in every format.
#include "session/engine_fixture.h"

#include <cmath>
#include <set>

namespace auspex::measure_test {
namespace {

using namespace test;

EngineDesc pair(uint32_t slots, uint32_t context) {
    const Shape shape = {.d = 64, .layers = 2, .heads = 2, .ffn = 96, .vocab = 97};
    EngineDesc desc;
    desc.target_synthetic = random_model(shape, 5);
    desc.draft_synthetic = random_model({.d = 32, .layers = 1, .heads = 1, .ffn = 64, .vocab = 97}, 6);
    desc.max_sequences = slots;
    desc.max_context = context;
    return desc;
}

// Costs are learnt from rounds after rounds whose sequences were alive, as rounds after that much text.
TEST(Measure, rounds_that_say_nothing_of_others_are_not_learnt) {
    EngineDesc desc = pair(1, 200);
    desc.draft_synthetic = desc.target_synthetic; // accepts everything, so that no host knows which round will be the last
    auto engine = make_engine(desc);
    ASSERT_TRUE(engine);
    const CostModel& costs = engine->planner().costs();
    const Job job = {.prompt = {1, 2, 3}, .max_tokens = 40, .draft_len = 3};
    run_job(*engine, job);
    for (uint32_t text = 1; text <= 3; ++text) {
        const uint32_t before = costs.n_rounds();
        const Answer answer = run_job(*engine, job);
        ASSERT_TRUE(drain(*engine).ok()); // another round was queued after the last one
        ASSERT_GT(answer.stats.rounds, 4u);
        EXPECT_EQ(costs.n_rounds() - before, answer.stats.rounds - 1) << "the first comes after the prompt";
        EXPECT_GE(costs.text_len(), 3 + 40 - 3 * 4);
        EXPECT_LE(costs.text_len(), 3 + 40);
    }
}

// ---- passes -------------------------------------------------------------------------------------------------------------

TEST(Measure, passes_add_up) {
    auto engine = make_engine(pair(1, 200));
    ASSERT_TRUE(engine);
    auto measured = engine->measure_pass({.n_rows = 5, .depth = 40, .repetitions = 3, .stages = true});
    ASSERT_TRUE(measured.ok()) << measured.status().message();
    const PassTimes& five = measured.value();
    EXPECT_GT(five.wall_ms, 0);
    EXPECT_EQ(five.weights_bytes, engine->target().weights().bytes_per_pass());
    EXPECT_EQ(five.cache_bytes, 2u * 1 * 32 * 2 * 2 * 45) << "K and V, heads, head_dim, f16, layers, positions";
    const double layer = 64 * (64 + 2 * 32) + 64 * 64 + 3 * 64 * 96;
    EXPECT_DOUBLE_EQ(five.flops, 2 * 5 * (2 * layer + 97 * 64));
    EXPECT_GT(five.n_dispatches, 2u * 5);
    EXPECT_GE(five.n_barriers, five.n_dispatches / 2);
    if (engine->device().caps.timestamp_period_ns > 0) {
        EXPECT_LE(five.least_ms, five.gpu_ms);
        EXPECT_GE(five.most_ms, five.gpu_ms);
        std::set<Region> found;
        uint32_t count = 0;
        for (const StageTime& stage : five.stages) {
            EXPECT_TRUE(found.insert(stage.stage).second) << region_name(stage.stage);
            EXPECT_GE(stage.ms, 0);
            EXPECT_GE(stage.count, 1u);
            count += stage.count;
        }
        // Whatever stages are fused, these are there and what is of a layer comes once for each of the two.
        for (Region stage : {Region::qkv, Region::attention, Region::down, Region::head, Region::sampling}) EXPECT_TRUE(found.contains(stage)) << region_name(stage);
        for (const StageTime& stage : five.stages) {
            EXPECT_EQ(stage.count, stage.stage == Region::attention ? 2u : stage.count);
        }
        EXPECT_LE(count, five.n_dispatches) << "no stage without work";
    } else {
        EXPECT_LT(five.gpu_ms, 0);
        EXPECT_TRUE(five.stages.empty());
    }

    auto prompt = engine->measure_pass({.kind = PassKind::prompt, .n_rows = 8, .repetitions = 1});
    ASSERT_TRUE(prompt.ok());
    EXPECT_DOUBLE_EQ(prompt.value().flops, 2 * 8 * 2 * layer) << "no head";
    EXPECT_TRUE(prompt.value().stages.empty()) << "not asked for";
    auto draft = engine->measure_pass({.of = ModelRole::draft, .repetitions = 1});
    ASSERT_TRUE(draft.ok()) << draft.status().message();
    EXPECT_EQ(draft.value().weights_bytes, engine->draft()->weights().bytes_per_pass());
}

TEST(Measure, leaves_sequences_and_slots_as_they_were) {
    const Job job = {.prompt = random_prompt(20, 97, 3), .max_tokens = 60, .draft_len = 3};
    auto untouched = make_engine(pair(2, 200));
    ASSERT_TRUE(untouched);
    const Answer expected = run_job(*untouched, job);

    auto engine = make_engine(pair(2, 200));
    ASSERT_TRUE(engine);
    auto id = engine->create_sequence(job.request());
    ASSERT_TRUE(id.ok());
    const LiveSequence* live = find_sequence(*engine, id.value());
    drive(*engine, [&] { return live->n_generated() >= 20; });
    for (const bool of_draft : {false, true}) {
        auto measured = engine->measure_pass({.of = of_draft ? ModelRole::draft : ModelRole::target, .n_rows = 2, .depth = 150, .repetitions = 2, .stages = true});
        EXPECT_TRUE(measured.ok()) << measured.status().message();
    }
    EXPECT_TRUE(engine->measure_copy(1).ok());
    drive(*engine, [&] { return live->stop != StopReason::none; });
    EXPECT_EQ(answer_of(*engine, id.value()).tokens, expected.tokens);
    ASSERT_TRUE(destroy_sequence(*engine, id.value()).ok());
    drive(*engine);
    EXPECT_EQ(engine->target().cache().n_free_pages(), engine->target().cache().shape().n_pages) << "pages came back";
    EXPECT_EQ(engine->draft()->cache().n_free_pages(), engine->draft()->cache().shape().n_pages);
}

TEST(Measure, refusals) {
    EngineDesc alone = pair(1, 100);
    alone.draft_synthetic.reset();
    auto engine = make_engine(alone);
    ASSERT_TRUE(engine);
    auto code = [&](const PassRequest& request) { return engine->measure_pass(request).status().code(); };
    EXPECT_EQ(code({.of = ModelRole::draft}), Code::invalid_argument);
    EXPECT_EQ(code({.n_rows = 0}), Code::invalid_argument);
    EXPECT_EQ(code({.n_rows = 100000}), Code::invalid_argument);
    EXPECT_EQ(code({.depth = 100}), Code::capacity);
    EXPECT_EQ(code({.n_rows = 2, .depth = 99}), Code::capacity);
    EXPECT_EQ(code({.n_rows = 2, .depth = 98, .repetitions = 1}), Code::ok);
    EXPECT_EQ(code({.repetitions = 0}), Code::invalid_argument);
    EXPECT_EQ(engine->measure_copy(0).status().code(), Code::invalid_argument);
    ASSERT_TRUE(engine->create_sequence(Job{.prompt = {1, 2}, .max_tokens = 2}.request()).ok());
    EXPECT_EQ(code({}), Code::capacity) << "no free slot";
}

TEST(Measure, copies_have_a_speed) {
    auto engine = make_engine(pair(1, 100));
    ASSERT_TRUE(engine);
    auto copy = engine->measure_copy(3);
    ASSERT_TRUE(copy.ok()) << copy.status().message();
    EXPECT_GE(copy.value().bytes, 2u << 20);
    EXPECT_GT(copy.value().ms, 0);
    EXPECT_NEAR(copy.value().gb_per_second(), double(copy.value().bytes) / copy.value().ms * 1e-6, 1e-9);
    EXPECT_LT(copy.value().gb_per_second(), 1e5) << "no memory is so fast";
}

// ---- simulated acceptance -------------------------------------------------------------------------------------------------

SequenceStats simulate(Engine& engine, float alpha, float temperature, uint32_t n_sequences, uint32_t max_tokens, uint32_t draft_len) {
    std::vector<Job> jobs;
    for (uint32_t i = 0; i < n_sequences; ++i) {
        Job job = {.prompt = random_prompt(3, 97, i), .max_tokens = max_tokens, .draft_len = draft_len, .temperature = temperature, .seed = 100 + i};
        job.transforms.acceptance = AcceptanceRule::simulated;
        job.transforms.simulated_alpha = alpha;
        jobs.push_back(job);
    }
    SequenceStats sum;
    for (const Answer& answer : run_jobs(engine, jobs)) {
        EXPECT_EQ(answer.tokens.size(), max_tokens);
        sum.rounds += answer.stats.rounds;
        sum.n_tested += answer.stats.n_tested;
        sum.draft_n_accepted += answer.stats.draft_n_accepted;
        sum.overlap += answer.stats.overlap;
    }
    return sum;
}

TEST(SimulatedAcceptance, accepts_as_often_as_it_was_told) {
    constexpr uint32_t kSequences = 16, kTokens = 400, kDraftLen = 4;
    auto engine = make_engine(pair(kSequences, 512));
    ASSERT_TRUE(engine);
    for (const float temperature : {0.0f, 1.0f})
        for (const float alpha : {0.3f, 0.8f}) {
            const SequenceStats stats = simulate(*engine, alpha, temperature, kSequences, kTokens, kDraftLen);
            const double rate = double(stats.draft_n_accepted) / stats.n_tested, a = double(alpha);
            // Tests are independent coins. Five deviations, and what the last round of a sequence may lose to its limit.
            const double bound = 5 * std::sqrt(a * (1 - a) / stats.n_tested) + double(kSequences) * kDraftLen / stats.n_tested;
            EXPECT_GT(stats.n_tested, 4000u);
            EXPECT_NEAR(rate, a, bound) << "temperature " << temperature;
            EXPECT_NEAR(stats.overlap / stats.n_tested, a, 1e-5) << "its estimate is itself";
            const double per_round = double(kSequences) * kTokens / stats.rounds;
            EXPECT_NEAR(per_round, (1 - std::pow(a, kDraftLen + 1)) / (1 - a), 0.15) << "Leviathan et al. 2023, equation 1";
        }
}

TEST(SimulatedAcceptance, ends_at_all_and_nothing) {
    auto engine = make_engine(pair(2, 300));
    ASSERT_TRUE(engine);
    EXPECT_EQ(simulate(*engine, 0, 0, 2, 40, 4).draft_n_accepted, 0u);
    const SequenceStats all = simulate(*engine, 1, 1, 2, 100, 4);
    EXPECT_EQ(all.rounds, 2u * 100 / 5);
    EXPECT_EQ(all.draft_n_accepted, 2u * 100 / 5 * 4);
    EXPECT_EQ(engine->planner().long_run().counts(DraftClass::model).tested, 0) << "coins are not remembered as the pair's";
    EXPECT_GT(engine->planner().coins().counts(DraftClass::model).tested, 100) << "but auto learns what they do";
    run_job(*engine, {.prompt = {1, 2}, .max_tokens = 20, .draft_len = 4});
    EXPECT_GT(engine->planner().long_run().counts(DraftClass::model).tested, 0);
}

TEST(SimulatedAcceptance, is_refused_where_it_makes_no_sense) {
    auto engine = make_engine(pair(1, 100));
    ASSERT_TRUE(engine);
    for (const float alpha : {-0.1f, 1.1f, std::nanf("")}) {
        SequenceRequest request = Job{.prompt = {1}}.request();
        request.sampling.acceptance = AcceptanceRule::simulated;
        request.sampling.simulated_alpha = alpha;
        EXPECT_EQ(engine->create_sequence(request).status().code(), Code::invalid_argument) << alpha;
    }
    SequenceRequest lenient = Job{.prompt = {1}}.request();
    lenient.sampling.acceptance = AcceptanceRule::simulated;
    lenient.sampling.lenience = 0.5f;
    EXPECT_EQ(engine->create_sequence(lenient).status().code(), Code::invalid_argument);
}

// ---- weights made on the device ---------------------------------------------------------------------------------------------

TEST(MadeOnDevice, runs_in_every_format) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1,
                              DType::q2_k, DType::q3_k, DType::q4_k, DType::q5_k, DType::q6_k}) {
        SCOPED_TRACE(dtype_name(dtype));
        EngineDesc desc;
        desc.target_synthetic = random_model({.d = 256, .layers = 1, .heads = 4, .ffn = 288, .vocab = 203, .tied = true, .dtype = dtype, .scale = 0.05f}, 3);
        desc.target_synthetic->on_device = true;
        desc.max_context = 64;
        auto engine = make_engine(desc);
        ASSERT_TRUE(engine);
        EXPECT_EQ(engine->target().weights().layers[0].qkv.parts[0].dtype, dtype);
        const bool fits = 288 % dtype_info(dtype).block_elements == 0; // down's columns
        EXPECT_EQ(engine->target().weights().layers[0].down.parts[0].dtype, fits ? dtype : fitting_type(dtype, 288));
        double sum = 0, squares = 0;
        const std::vector<uint32_t> prompt = {1, 2, 3, 4};
        ASSERT_TRUE(engine->score(prompt, [&](uint32_t, std::span<const float> logits) {
            for (const float logit : logits) {
                EXPECT_TRUE(std::isfinite(logit));
                sum += double(logit);
                squares += double(logit) * double(logit);
            }
        }).ok());
        // A final norm makes Σ x² = d: logits spread by scale · √d = 0.8, whatever lies between.
        const double n = 4 * 203;
        EXPECT_NEAR(std::sqrt(squares / n), 0.8, 0.3) << sum / n;
        EXPECT_EQ(run_job(*engine, {.prompt = prompt, .max_tokens = 20}).tokens.size(), 20u);
    }
}

TEST(MadeOnDevice, a_type_to_convert_to_is_the_type_they_are_made_in) {
    EngineDesc desc;
    desc.target_synthetic = random_model({.d = 64, .layers = 1, .heads = 2, .ffn = 96, .vocab = 97, .dtype = DType::bf16}, 3);
    desc.target_synthetic->on_device = true;
    desc.target_type = DType::q4_0;
    desc.max_context = 64;
    auto engine = make_engine(desc);
    ASSERT_TRUE(engine);
    EXPECT_EQ(engine->target().weights().head().dtype, DType::q4_0);
    EXPECT_EQ(engine->memory_plan().target_weights, engine->target().weights().bytes());
}

TEST(MadeOnDevice, refusals) {
    auto code = [](const SyntheticModel& model) { return make_synthetic_checkpoint(model).status().code(); };
    SyntheticModel model = random_model({.d = 256, .dtype = DType::q4_k}, 3);
    EXPECT_EQ(code(model), Code::invalid_argument) << "the host makes no blocks";
    model.on_device = true;
    EXPECT_EQ(code(model), Code::ok);
    auto made = make_synthetic_checkpoint(model);
    ASSERT_TRUE(made.ok());
    std::vector<std::byte> out(16);
    EXPECT_FALSE(made.value()->read(*made.value()->find("lm_head.weight"), 0, out).ok()) << "nobody can read them";
    model.distinct_tokens = 5;
    EXPECT_EQ(code(model), Code::invalid_argument);
    model.distinct_tokens = 0;
    model.dtype = DType::u32;
    EXPECT_EQ(code(model), Code::invalid_argument);
}

} // namespace
} // namespace auspex::measure_test
