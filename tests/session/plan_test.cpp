// Memory is planned before it is taken: the plan is what is then reserved, and what does not fit says what would.
#include "session/engine_fixture.h"

namespace auspex::test::plan_test {
namespace {

constexpr uint64_t kMebi = 1u << 20;

TEST(Plan, is_what_the_engine_then_reserves) {
    std::vector<EngineDesc> descs(4, bundled_pair(1, 512));
    descs[1].max_sequences = 8;
    descs[1].cache_dtype = DType::q8_0;
    descs[2].target_type = DType::q8_0;
    descs[2].draft_type = DType::q4_0;
    descs[3].draft_path.clear();
    descs[3].max_context = 0;
    for (const EngineDesc& desc : descs) {
        auto plan = Engine::plan(desc, warnings_to_stderr());
        ASSERT_TRUE(plan.ok()) << plan.status().message();
        const auto engine = make_engine(desc);
        ASSERT_TRUE(engine);
        EXPECT_EQ(plan.value().total, engine->reserved_bytes());
        EXPECT_EQ(plan.value().target_weights, engine->target().weights().bytes());
        EXPECT_EQ(plan.value().target_cache, engine->target().cache().bytes());
        EXPECT_EQ(plan.value().max_context, engine->max_context());
    }
}

// A model whose cache outweighs its weights, on a device with room for some of it.
EngineDesc squeezed(uint32_t context, uint64_t free_bytes) {
    EngineDesc desc;
    desc.target_synthetic = random_model({.d = 256, .layers = 2, .heads = 8, .kv_heads = 8, .head_dim = 32, .ffn = 512}, 1, 65536);
    desc.max_context = context;
    desc.adjust_caps = [free_bytes](DeviceCaps& caps) { caps.device_free_bytes = free_bytes; };
    return desc;
}

TEST(Plan, says_which_context_would_fit) {
    constexpr uint64_t kFree = 160 * kMebi; // 32768 tokens take 128 MiB of cache alone
    bool uploaded = false;
    EngineDesc desc = squeezed(65536, kFree);
    desc.progress = [&](float) { uploaded = true; };
    const auto refused = Engine::create(desc, {});
    ASSERT_EQ(refused.status().code(), Code::out_of_device_memory);
    EXPECT_FALSE(uploaded);
    const std::string& message = refused.status().message();
    const size_t at = message.find("a context of ", message.find(';'));
    ASSERT_NE(at, std::string::npos) << message;
    const auto context = static_cast<uint32_t>(std::stoul(message.substr(at + 13)));
    EXPECT_TRUE(Engine::create(squeezed(context, kFree), {}).ok()) << message;
    EXPECT_FALSE(Engine::create(squeezed(context + 256, kFree), {}).ok()) << message;
}

TEST(Plan, says_which_weights_would_fit) {
    EngineDesc desc;
    desc.target_synthetic = random_model({.d = 1024, .layers = 2, .heads = 8, .kv_heads = 2, .head_dim = 128, .ffn = 8192, .vocab = 8192, .dtype = DType::f16}, 1);
    desc.max_context = 256;
    auto plan = Engine::plan(desc, {});
    ASSERT_TRUE(plan.ok());
    desc.adjust_caps = [free = plan.value().total * 3 / 4](DeviceCaps& caps) { caps.device_free_bytes = free; };
    const auto refused = Engine::create(desc, {});
    ASSERT_EQ(refused.status().code(), Code::out_of_device_memory);
    EXPECT_NE(refused.status().message().find("weights as q8_0"), std::string::npos) << refused.status().message();
    desc.target_type = DType::q8_0;
    EXPECT_TRUE(Engine::create(desc, {}).ok());
}

} // namespace
} // namespace auspex::test::plan_test
