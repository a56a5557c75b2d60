// The tools interface: devices and models described, memory reckoned before it is taken.
#include <auspex/auspex_tools.h>

#include <gtest/gtest.h>

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

} // namespace
