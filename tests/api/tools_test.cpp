// The tools interface: devices and models described, memory reckoned before it is taken.
#include <auspex/auspex_tools.h>

#include <gtest/gtest.h>
#include <set>
#include <vector>

namespace tools_test {
namespace {

TEST(CApiTools, DevicesAreDescribedByIndex) {
    auspex_device_info info;
    ASSERT_EQ(auspex_device_info_init(&info, sizeof info), AUSPEX_OK);
    ASSERT_EQ(auspex_device_describe(0, &info, nullptr, nullptr), AUSPEX_OK);
    EXPECT_NE(info.name[0], '\0');
    EXPECT_NE(info.kind[0], '\0');
    EXPECT_EQ(auspex_device_describe(1000, &info, nullptr, nullptr), AUSPEX_ERROR_NOT_FOUND);
    EXPECT_EQ(auspex_device_describe(0, nullptr, nullptr, nullptr), AUSPEX_ERROR_INVALID_ARGUMENT);
}

TEST(CApiTools, ModelsAreDescribedByPath) {
    auspex_model_info info;
    ASSERT_EQ(auspex_model_info_init(&info, sizeof info), AUSPEX_OK);
    ASSERT_EQ(auspex_model_describe(AUSPEX_PAIR_DIR "/target", AUSPEX_CACHE_F16, &info, nullptr, nullptr), AUSPEX_OK);
    EXPECT_GT(info.n_parameters, 1'000'000u);
    const uint64_t narrow = info.cache_bytes_per_token;
    ASSERT_EQ(auspex_model_describe(AUSPEX_PAIR_DIR "/target", AUSPEX_CACHE_F32, &info, nullptr, nullptr), AUSPEX_OK);
    EXPECT_EQ(info.cache_bytes_per_token, 2 * narrow);
    ASSERT_EQ(auspex_model_describe(AUSPEX_PAIR_DIR "/target", AUSPEX_CACHE_Q8_0, &info, nullptr, nullptr), AUSPEX_OK);
    EXPECT_EQ(info.cache_bytes_per_token, narrow * 17 / 32);
    EXPECT_EQ(auspex_model_describe(AUSPEX_PAIR_DIR "/target", static_cast<auspex_cache_type>(77), &info, nullptr, nullptr), AUSPEX_ERROR_INVALID_ARGUMENT);
    int errors = 0;
    const auspex_log_callback count = [](void* user_data, auspex_log_level level, const char*) {
        *static_cast<int*>(user_data) += level == AUSPEX_LOG_ERROR;
    };
    EXPECT_EQ(auspex_model_describe("/no/such/model", AUSPEX_CACHE_F16, &info, count, &errors), AUSPEX_ERROR_NOT_FOUND);
    EXPECT_EQ(errors, 1);
    EXPECT_EQ(auspex_model_describe(nullptr, AUSPEX_CACHE_F16, &info, nullptr, nullptr), AUSPEX_ERROR_INVALID_ARGUMENT);
}

TEST(CApiTools, DraftersAreListed) {
    const uint32_t n = auspex_list_drafters(nullptr, 0);
    ASSERT_EQ(n, 8u);
    std::vector<auspex_drafter_info> rows(n + 1);
    rows[2].name = rows[n].name = "untouched";
    EXPECT_EQ(auspex_list_drafters(rows.data(), 2), n);
    EXPECT_STREQ(rows[2].name, "untouched");
    EXPECT_EQ(auspex_list_drafters(rows.data(), n + 1), n);
    EXPECT_STREQ(rows[n].name, "untouched");
    rows.pop_back();
    std::set<auspex_drafter> values;
    std::set<uint32_t> places;
    for (const auspex_drafter_info& row : rows) {
        EXPECT_TRUE(values.insert(row.drafter).second) << row.name;
        if (row.rounds_place != ~0u) { EXPECT_TRUE(places.insert(row.rounds_place).second) << row.name; }
        EXPECT_EQ(row.needs_model != 0, row.drafter == AUSPEX_DRAFTER_MODEL || row.drafter == AUSPEX_DRAFTER_HYBRID) << row.name;
        EXPECT_EQ(row.needs_self != 0, row.drafter == AUSPEX_DRAFTER_SELF || row.drafter == AUSPEX_DRAFTER_HYBRID) << row.name; // the latter: either
        EXPECT_EQ(row.may_use_model != 0, row.needs_model != 0 || row.needs_self != 0 || row.drafter == AUSPEX_DRAFTER_AUTO) << row.name;
        EXPECT_EQ(row.asks_host != 0, row.drafter == AUSPEX_DRAFTER_HOST) << row.name;
    }
    EXPECT_EQ(values.size(), 8u);
    EXPECT_EQ(*values.rbegin(), AUSPEX_DRAFTER_SELF);
    EXPECT_EQ(places, (std::set<uint32_t>{0, 1, 2, 3, 4, 5})); // all of auspex_sequence_stats.drafter_rounds, and self_drafter_rounds
}

TEST(CApiTools, MemoryIsReckonedBeforeItIsTaken) {
    auspex_engine_desc desc;
    auspex_engine_desc_init(&desc, sizeof desc);
    desc.target_path = AUSPEX_PAIR_DIR "/target";
    desc.draft_path = AUSPEX_PAIR_DIR "/draft";
    desc.max_context = 512;
    auspex_memory_plan plan;
    ASSERT_EQ(auspex_memory_plan_init(&plan, sizeof plan), AUSPEX_OK);
    ASSERT_EQ(auspex_plan_memory(&desc, &plan), AUSPEX_OK);
    EXPECT_EQ(plan.fits, 1u);
    EXPECT_EQ(plan.max_context, 512u);
    EXPECT_GE(plan.total, plan.target_weights + plan.draft_weights + plan.target_cache + plan.draft_cache + plan.activations);
    auspex_engine* engine = nullptr;
    ASSERT_EQ(auspex_engine_create(&desc, &engine), AUSPEX_OK);
    auspex_engine_info info;
    auspex_engine_info_init(&info, sizeof info);
    EXPECT_EQ(auspex_engine_get_info(engine, &info), AUSPEX_OK);
    EXPECT_EQ(info.device_memory_bytes, plan.total);
    auspex_engine_destroy(engine);
    EXPECT_EQ(auspex_plan_memory(nullptr, &plan), AUSPEX_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(auspex_plan_memory(&desc, nullptr), AUSPEX_ERROR_INVALID_ARGUMENT);
}

// A small random pair whose weights are made on the device, as bf16 and as `dtype`.
auspex_engine* synthetic_engine(uint32_t dtype, auspex_status expected = AUSPEX_OK) {
    auspex_synthetic_models models;
    auspex_synthetic_models_init(&models, sizeof models);
    models.target = {64, 1, 2, 1, 32, 96, 97, 256, 0, AUSPEX_SYNTHETIC_BF16, 1, 0.02f, 0, 1};
    models.draft = {64, 1, 2, 1, 32, 96, 97, 256, 0, dtype, 2, 0.02f, 0, 1};
    auspex_engine_desc desc;
    auspex_engine_desc_init(&desc, sizeof desc);
    desc.header.next = &models;
    auspex_engine* engine = nullptr;
    EXPECT_EQ(auspex_engine_create(&desc, &engine), expected);
    return engine;
}

TEST(CApiTools, MeasuresPassesAndMemory) {
    EXPECT_EQ(synthetic_engine(13, AUSPEX_ERROR_INVALID_ARGUMENT), nullptr) << "no such dtype";
    auspex_engine* engine = synthetic_engine(AUSPEX_SYNTHETIC_Q4_0);
    ASSERT_NE(engine, nullptr);
    auspex_copy_speed speed = {};
    EXPECT_EQ(auspex_engine_measure_copy(engine, 2, &speed), AUSPEX_OK);
    EXPECT_GT(speed.gb_per_second, 0.0);
    EXPECT_EQ(auspex_engine_measure_copy(engine, 0, &speed), AUSPEX_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(auspex_engine_measure_copy(engine, 1, nullptr), AUSPEX_ERROR_INVALID_ARGUMENT);

    auspex_pass_desc desc;
    ASSERT_EQ(auspex_pass_desc_init(&desc, sizeof desc), AUSPEX_OK);
    desc.n_rows = 3;
    desc.depth = 10;
    desc.with_stages = 1;
    auspex_pass_times times;
    ASSERT_EQ(auspex_pass_times_init(&times, sizeof times), AUSPEX_OK);
    ASSERT_EQ(auspex_engine_measure_pass(engine, &desc, &times), AUSPEX_OK);
    EXPECT_GT(times.wall_ms, 0.0);
    EXPECT_GT(times.n_dispatches, 5u);
    EXPECT_GE(times.n_stages, times.gpu_ms >= 0.0 ? 5u : 0u);
    desc.of_draft = 1;
    const uint64_t target_bytes = times.weights_bytes;
    ASSERT_EQ(auspex_engine_measure_pass(engine, &desc, &times), AUSPEX_OK);
    EXPECT_LT(times.weights_bytes, target_bytes / 2) << "4 bits against 16";
    desc.depth = 254;
    EXPECT_EQ(auspex_engine_measure_pass(engine, &desc, &times), AUSPEX_ERROR_CAPACITY);
    EXPECT_EQ(auspex_engine_measure_pass(engine, nullptr, &times), AUSPEX_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(auspex_engine_measure_pass(engine, &desc, nullptr), AUSPEX_ERROR_INVALID_ARGUMENT);
    auspex_engine_destroy(engine);
}

// Drafts accepted of 40 tokens by greedy decoding with draft_len 4; -1: refused.
int accepted(auspex_engine* engine, const void* next, auspex_acceptance acceptance = AUSPEX_ACCEPT_REJECTION) {
    const uint32_t prompt[] = {1, 2, 3};
    auspex_sequence_desc desc;
    auspex_sequence_desc_init(&desc, sizeof desc);
    desc.header.next = next;
    desc.prompt_tokens = prompt;
    desc.prompt_token_count = 3;
    desc.max_tokens = 40;
    desc.ignore_eos = 1;
    desc.drafter = AUSPEX_DRAFTER_MODEL;
    desc.draft_len = 4;
    desc.acceptance = acceptance;
    auspex_sequence sequence = {};
    if (auspex_sequence_create(engine, &desc, &sequence) != AUSPEX_OK) return -1;
    while (auspex_engine_step(engine, 0, nullptr) == AUSPEX_PENDING) auspex_engine_wait(engine, 1000);
    auspex_sequence_stats stats;
    auspex_sequence_stats_init(&stats, sizeof stats);
    EXPECT_EQ(auspex_sequence_get_stats(engine, sequence, &stats), AUSPEX_OK);
    EXPECT_EQ(stats.predicted_n, 40u);
    auspex_sequence_destroy(engine, sequence);
    return static_cast<int>(stats.draft_n_accepted);
}

TEST(CApiTools, AcceptanceIsSimulatedOnRequestAlone) {
    auspex_engine* engine = synthetic_engine(AUSPEX_SYNTHETIC_Q4_0);
    ASSERT_NE(engine, nullptr);
    const int real = accepted(engine, nullptr);
    EXPECT_LT(real, 20) << "unrelated weights";
    auspex_simulated_acceptance simulated;
    ASSERT_EQ(auspex_simulated_acceptance_init(&simulated, sizeof simulated), AUSPEX_OK);
    EXPECT_EQ(accepted(engine, &simulated), 0);
    simulated.alpha = 1;
    EXPECT_EQ(accepted(engine, &simulated), 32) << "8 rounds of 4 and a bonus";
    EXPECT_EQ(accepted(engine, &simulated, AUSPEX_ACCEPT_COUPLED), -1);
    simulated.alpha = 2;
    EXPECT_EQ(accepted(engine, &simulated), -1);
    simulated.header.size = 4;
    EXPECT_EQ(accepted(engine, &simulated), -1) << "not initialised";
    EXPECT_EQ(accepted(engine, nullptr), real) << "of one sequence, not of the engine";
    EXPECT_EQ(accepted(engine, nullptr, static_cast<auspex_acceptance>(2)), -1) << "not by the enumeration of auspex.h";
    auspex_engine_destroy(engine);
}

} // namespace
} // namespace tools_test
