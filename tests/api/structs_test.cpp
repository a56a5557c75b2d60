// The structs of the C interface: any size from a header on is initialised, and nothing beyond it touched.
#include "api/engine_handle.h"
#include "device/vk_cooperative_matrix.h"

#include <auspex/auspex.h>
#include <auspex/auspex_tools.h>
#include <auspex/auspex_vulkan.h>

#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <vector>

namespace structs_test {
namespace {

// Every init function, by size of its struct and its type.
struct InitCase {
    const char* name;
    size_t size;
    auspex_struct_type type;
    std::function<auspex_status(void*, size_t)> init;
};
template <typename T> InitCase init_case(const char* name, auspex_struct_type type, auspex_status (*init)(T*, size_t)) {
    return {name, sizeof(T), type, [init](void* at, size_t size) { return init(static_cast<T*>(at), size); }};
}
std::vector<InitCase> init_cases() {
    return {init_case("engine_desc", AUSPEX_TYPE_ENGINE_DESC, auspex_engine_desc_init),
            init_case("engine_info", AUSPEX_TYPE_ENGINE_INFO, auspex_engine_info_init),
            init_case("step_result", AUSPEX_TYPE_STEP_RESULT, auspex_step_result_init),
            init_case("sequence_desc", AUSPEX_TYPE_SEQUENCE_DESC, auspex_sequence_desc_init),
            init_case("sequence_stats", AUSPEX_TYPE_SEQUENCE_STATS, auspex_sequence_stats_init),
            init_case("sequence_state", AUSPEX_TYPE_SEQUENCE_STATE, auspex_sequence_state_init),
            init_case("engine_load", AUSPEX_TYPE_ENGINE_LOAD, auspex_engine_load_init),
            init_case("vulkan_device", AUSPEX_TYPE_VULKAN_DEVICE, auspex_vulkan_device_init),
            init_case("chat_turn", AUSPEX_TYPE_CHAT_TURN, auspex_chat_turn_init), init_case("score_options", AUSPEX_TYPE_SCORE_OPTIONS, auspex_score_options_init),
            init_case("chat_options", AUSPEX_TYPE_CHAT_OPTIONS, auspex_chat_options_init),
            init_case("device_info", AUSPEX_TYPE_DEVICE_INFO, auspex_device_info_init),
            init_case("model_info", AUSPEX_TYPE_MODEL_INFO, auspex_model_info_init),
            init_case("memory_plan", AUSPEX_TYPE_MEMORY_PLAN, auspex_memory_plan_init),
            init_case("synthetic_models", AUSPEX_TYPE_SYNTHETIC_MODELS, auspex_synthetic_models_init)};
}

TEST(CApiStructs, InitWritesExactlyTheSizeThatIsSaid) {
    for (const InitCase& one : init_cases()) {
        SCOPED_TRACE(one.name);
        std::vector<unsigned char> full(one.size, 0x5a);
        ASSERT_EQ(one.init(full.data(), one.size), AUSPEX_OK);
        for (size_t size = sizeof(auspex_header); size <= one.size + 64; ++size) {
            alignas(16) unsigned char buffer[4096];
            ASSERT_LE(size + 16, sizeof buffer);
            std::memset(buffer, 0x5a, sizeof buffer);
            ASSERT_EQ(one.init(buffer, size), AUSPEX_OK);
            auspex_header header;
            std::memcpy(&header, buffer, sizeof header);
            EXPECT_EQ(header.type, one.type);
            EXPECT_EQ(header.size, size);
            EXPECT_EQ(header.next, nullptr);
            // What an older caller has of the struct gets the same defaults, what a newer one has more is zero.
            for (size_t i = sizeof header; i < size; ++i) ASSERT_EQ(buffer[i], i < one.size ? full[i] : 0) << "byte " << i << " of " << size;
            for (size_t i = size; i < size + 16; ++i) ASSERT_EQ(buffer[i], 0x5a) << "wrote beyond " << size;
        }
    }
}

TEST(CApiStructs, InitRefusesLessThanAHeaderAndNull) {
    for (const InitCase& one : init_cases()) {
        SCOPED_TRACE(one.name);
        unsigned char buffer[sizeof(auspex_header)];
        std::memset(buffer, 0x5a, sizeof buffer);
        for (size_t size = 0; size < sizeof(auspex_header); ++size) EXPECT_EQ(one.init(buffer, size), AUSPEX_ERROR_INVALID_ARGUMENT);
        for (unsigned char byte : buffer) EXPECT_EQ(byte, 0x5a);
        EXPECT_EQ(one.init(nullptr, one.size), AUSPEX_ERROR_INVALID_ARGUMENT);
    }
}

TEST(CApiStructs, StatusTextsAreDistinctLines) {
    std::set<std::string> texts;
    const int last = AUSPEX_ERROR_NO_DEVICE;
    for (int status = AUSPEX_FINISHED; status >= last; --status) {
        const std::string text = auspex_status_text(static_cast<auspex_status>(status));
        EXPECT_FALSE(text.empty());
        EXPECT_EQ(text.find('\n'), std::string::npos);
        EXPECT_TRUE(texts.insert(text).second) << status << ": " << text;
    }
    EXPECT_EQ(texts.count("unknown status"), 0u);
    EXPECT_STREQ(auspex_status_text(static_cast<auspex_status>(12345)), "unknown status");
    EXPECT_EQ(auspex_version(), AUSPEX_VERSION_MAJOR << 22 | AUSPEX_VERSION_MINOR << 12 | AUSPEX_VERSION_PATCH);
}

// What of a host's device the engine would use, of these features and extensions.
auspex::BorrowedDevice borrowed(uint32_t api_version, const void* features, std::vector<const char*> extensions = {}) {
    VkPhysicalDeviceFeatures2 enabled = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, const_cast<void*>(features), {}};
    auspex_vulkan_device host;
    auspex_vulkan_device_init(&host, sizeof host);
    host.api_version = api_version;
    host.enabled_features = &enabled;
    host.enabled_extensions = extensions.data();
    host.enabled_extension_count = static_cast<uint32_t>(extensions.size());
    auspex_engine_desc desc;
    auspex_engine_desc_init(&desc, sizeof desc);
    desc.header.next = &host.header;
    auspex::EngineDesc read;
    EXPECT_EQ(auspex::read_engine_desc(desc, {}, read), AUSPEX_OK);
    EXPECT_TRUE(read.borrowed);
    return read.borrowed.value_or(auspex::BorrowedDevice{});
}

// An extension's features count where the extension is named, or the version that took it in.
TEST(CApiStructs, AHostsFeaturesAreThoseItNames) {
    const VkPhysicalDeviceShaderIntegerDotProductFeatures dots = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES, nullptr, VK_TRUE};
    EXPECT_FALSE(borrowed(VK_API_VERSION_1_2, &dots).integer_dots);
    EXPECT_TRUE(borrowed(VK_API_VERSION_1_2, &dots, {VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME}).integer_dots);
    EXPECT_TRUE(borrowed(VK_API_VERSION_1_3, &dots).integer_dots);
    EXPECT_FALSE(borrowed(VK_API_VERSION_1_3, nullptr).integer_dots);

    VkPhysicalDeviceSubgroupSizeControlFeatures sizes = {};
    sizes.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES;
    sizes.subgroupSizeControl = sizes.computeFullSubgroups = VK_TRUE;
    EXPECT_FALSE(borrowed(VK_API_VERSION_1_2, &sizes).full_subgroups);
    EXPECT_TRUE(borrowed(VK_API_VERSION_1_2, &sizes, {"VK_EXT_subgroup_size_control"}).subgroup_size_control);

    VkPhysicalDeviceVulkan13Features all = {};
    all.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES;
    all.subgroupSizeControl = all.computeFullSubgroups = all.shaderIntegerDotProduct = VK_TRUE;
    auspex::BorrowedDevice device = borrowed(VK_API_VERSION_1_3, &all);
    EXPECT_TRUE(device.integer_dots && device.full_subgroups && device.subgroup_size_control);
    EXPECT_FALSE(device.shader_int64 || device.cooperative_matrix);
    all.shaderIntegerDotProduct = all.computeFullSubgroups = VK_FALSE;
    device = borrowed(VK_API_VERSION_1_3, &all);
    EXPECT_FALSE(device.integer_dots || device.full_subgroups || device.subgroup_size_control);

    VkPhysicalDeviceVulkan12Features core = {};
    core.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    core.vulkanMemoryModel = core.vulkanMemoryModelDeviceScope = core.shaderFloat16 = VK_TRUE;
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrix = {};
    matrix.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR;
    matrix.cooperativeMatrix = VK_TRUE;
    matrix.pNext = &core;
    EXPECT_TRUE(borrowed(VK_API_VERSION_1_3, &matrix, {VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME}).cooperative_matrix);
    EXPECT_FALSE(borrowed(VK_API_VERSION_1_3, &matrix).cooperative_matrix);
    core.shaderFloat16 = VK_FALSE;
    EXPECT_FALSE(borrowed(VK_API_VERSION_1_3, &matrix, {VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME}).cooperative_matrix);
}

} // namespace
} // namespace structs_test
