// The profiles themselves: what a module asks for, what is seen through a hook, what is caught, what is refused.
#include "gpu_test.h"
#include "kernels/embedded_shaders.h"
#include "profiles/device_profile.h"
#include "profiles/module_sizes.h"
#include "session/engine_fixture.h"
#include "test_shaders.h"

#include <gtest/gtest-spi.h>

namespace auspex::test::profiles_test {
namespace {

TEST(ModuleSizes, constants_decide) {
    const ModuleSizes by_default = sizes_of(test_shader("sizes"), {});
    EXPECT_EQ(by_default.invocations(), 2u);
    EXPECT_EQ(by_default.shared_bytes, 16u * 8 + 4);
    const ModuleSizes of_200 = sizes_of(test_shader("sizes"), {{0, 200}, {1, 60}});
    EXPECT_EQ(of_200.local_size[0], 60u);
    EXPECT_EQ(of_200.invocations(), 60u * 2);
    EXPECT_EQ(of_200.shared_bytes, 16u * 200 + 64);
}

TEST(ModuleSizes, every_module_is_understood) {
    for (std::string_view name : embedded_shader_names()) {
        SCOPED_TRACE(name);
        EXPECT_GE(sizes_of(embedded_shader(name), {}).invocations(), 1u);
    }
}

struct Expected {
    const char* profile;
    const char* numerics;
    uint32_t lanes;
    bool shuffles; // in the profile's own tuning
};
constexpr Expected kExpected[] = {
    {"adreno", "n1-l64-s128-h", 64, true},     {"mali", "n1-l32-s128-h", 32, false},       {"intel", "n1-l8-s128-t8-p2048-h", 8, true},
    {"xe2", "n1-l16-s128-t8-p2048-h", 16, true}, {"nvk", "n1-l32-s128-t8-p-h", 32, true},
    {"vega", "n1-l64-s128-t8-p-h", 64, true},  {"rdna", "n1-l32-s128-t8-p-h", 32, true},   {"turing", "n1-l32-s128-t8-p-h", 32, true},
    {"apple", "n1-l32-s128-t8-p-h", 32, true}, {"smallest", "n1-l32-s128", 32, false},
};

TEST(DeviceProfiles, give_each_device_its_sizes) {
    EXPECT_EQ(std::size(kExpected) + 1, device_profiles().size()); // the minimum is refused
    for (const Expected& expected : kExpected) {
        SCOPED_TRACE(expected.profile);
        const DeviceProfile* profile = find_profile(expected.profile);
        ASSERT_TRUE(profile);
        auto made = Device::create({.device = "", .hook = under(*profile)}, Logger{});
        ASSERT_TRUE(made.ok()) << made.status().message();
        const DeviceCaps& caps = made.value()->caps;
        EXPECT_EQ(caps.vendor_id, profile->vendor_id);
        EXPECT_EQ(caps.driver_id, profile->driver_id);
        EXPECT_EQ(caps.type, profile->type);
        EXPECT_LE(caps.max_storage_buffer_range, profile->storage_range);
        EXPECT_LE(caps.max_shared_memory_bytes, profile->shared_bytes);
        EXPECT_LE(caps.max_workgroup_invocations, profile->invocations);
        EXPECT_EQ(caps.timestamp_valid_bits > 0, profile->timestamps);
        DeviceCaps without_units = caps;
        without_units.matrix = {}; // of the real device
        const Tuning tuning = choose_tuning(without_units);
        // What the real device lacks no profile has, and then the sizes are others: SwiftShader has no halves, and 256 invocations.
        if (caps.shader_float16 == profile->float16 && caps.max_workgroup_invocations == profile->invocations) {
            EXPECT_EQ(tuning.numerics_id(), expected.numerics);
        }
        EXPECT_EQ(tuning.lanes, expected.lanes);
        EXPECT_EQ(tuning.subgroup, expected.shuffles);
        EXPECT_EQ(tuning.int8_drafts, caps.integer_dots && profile->quick_dots);
        EXPECT_EQ(runnable(tuning).numerics_id(), tuning.numerics_id()) << "other bits than the device would have";
    }
}

// Sizes that no other profile has; the long entries run all programs with them.
TEST(DeviceProfiles, nvk_has_16_rows_of_plain_formats_and_two_outputs) {
    auto made = Device::create({.device = "", .hook = under(*find_profile("nvk"))}, Logger{});
    ASSERT_TRUE(made.ok()) << made.status().message();
    const Tuning tuning = choose_tuning(made.value()->caps);
    EXPECT_EQ(tuning.matvec_rows, (std::vector<uint32_t>{1, 2, 4, 8, 16}));
    EXPECT_EQ(tuning.matvec_quant_rows, (std::vector<uint32_t>{1, 2, 4, 8}));
    EXPECT_EQ(tuning.matvec_outs, 2u);
    EXPECT_EQ(tuning.matvec_many_outs, 2u);
    EXPECT_EQ(tuning.matvec_staged_bytes, 0u);
}

TEST(DeviceProfiles, what_is_too_small_is_refused_by_name) {
    auto made = Device::create({.device = "", .hook = under(*find_profile("minimum"))}, Logger{});
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.status().code(), Code::no_device);
    EXPECT_NE(made.status().message().find("\"as minimum\" (binds 4 storage buffers, 9 are needed)"), std::string::npos) << made.status().message();
}

// Makes a kernel of sizes.comp that has so many bindings.
void make_kernel(Device& device, uint32_t n, uint32_t x, uint32_t n_bindings) {
    const uint32_t constants[] = {n, x};
    KernelDesc desc;
    desc.name = "sizes";
    desc.spirv = test_shader("sizes");
    desc.constants = constants;
    desc.layout.n_bindings = n_bindings;
    (void)Kernel::create(device, desc, VK_NULL_HANDLE);
}

TEST(DeviceProfiles, what_goes_beyond_a_limit_fails) {
    const DeviceProfile& smallest = *find_profile("smallest");
    auto made = Device::create({.device = "", .hook = under(smallest)}, Logger{});
    ASSERT_TRUE(made.ok()) << made.status().message();
    static Device* device = nullptr; // the macros take no locals
    device = made.value().get();
    make_kernel(*device, 1000, 64, 9);
    EXPECT_NONFATAL_FAILURE(make_kernel(*device, 1000, 65, 9), "invocations of a workgroup: 130, smallest allows 128");
    EXPECT_NONFATAL_FAILURE(make_kernel(*device, 1021, 64, 9), "bytes of shared memory: 16400, smallest allows 16384");
    EXPECT_NONFATAL_FAILURE(make_kernel(*device, 1000, 64, 10), "storage buffers: 10, smallest allows 9");
}

// Every kernel of every round, under each profile; without shuffles where lavapipe's are too narrow, which takes more shared memory.
TEST(DeviceProfiles, rounds_of_every_size_stay_within) {
    for (const Expected& expected : kExpected) {
        SCOPED_TRACE(expected.profile);
        EngineDesc desc = bundled_pair(2, 1024);
        desc.device.hook = under(*find_profile(expected.profile));
        desc.adjust_tuning = [](Tuning& tuning) { tuning = runnable(tuning); };
        desc.max_draft_len = kMaxDraft;
        auto engine = Engine::create(desc, warnings_to_stderr());
        ASSERT_TRUE(engine.ok()) << engine.status().message();
        for (const float temperature : {0.0f, 1.0f}) {
            SequenceRequest request;
            request.drafter = DrafterChoice::automatic;
            request.draft_len = kMaxDraft;
            request.sampling.temperature = temperature;
            const Status prepared = engine.value()->prepare(request);
            ASSERT_TRUE(prepared.ok()) << prepared.message();
        }
    }
}

} // namespace
} // namespace auspex::test::profiles_test
