// The other order: every invocation still has one number, of which all inputs agree, and what lavapipe's order hides is seen.
#include "gpu_test.h"
#include "kernels/embedded_shaders.h"
#include "order/reordered.h"
#include "test_shaders.h"

#include <cstdlib>
#include <vulkan/vulkan_core.h>

namespace auspex::test::order_test {
namespace {

// Workgroups one after the other; before anything opens a device.
const int one_thread = setenv("LP_NUM_THREADS", "0", 1);

constexpr uint32_t kGroups = 5, kInvocations = 64;

struct Numbers {
    uint32_t group, local, index, groups;
    uint32_t in_subgroups, earlier, group_before, invocations;
};

class Order : public GpuTestWith<const char*> {
  protected:
    std::vector<Numbers> probe(bool is_reordered, bool has_barrier) {
        std::vector<uint32_t> spirv(test_shader(GetParam()).begin(), test_shader(GetParam()).end());
        if (is_reordered) spirv = reordered(spirv);
        const std::array<uint32_t, 2> constants = {kInvocations, has_barrier ? 1u : 0u};
        auto kernel = Kernel::create(device(), {.name = GetParam(), .spirv = spirv, .layout = layout_of<ops::OrderProbe>(), .constants = constants}, VK_NULL_HANDLE);
        EXPECT_TRUE(kernel.ok()) << kernel.status().message();
        if (!kernel.ok()) return {};
        const Buffer numbers = output<Numbers>(kGroups * kInvocations), marks = upload(std::vector<uint32_t>(kGroups, 0));
        run([&](Recorder& to) {
            to.cmd.dispatch(KernelOf<ops::OrderProbe>{&kernel.value()}, {kGroups, 1, 1}, {}, {.numbers = numbers.view(), .marks = marks.view()});
        });
        return read<Numbers>(numbers, kGroups * kInvocations);
    }
    // Of all invocations.
    static uint32_t n_seen_too_soon(const std::vector<Numbers>& numbers) {
        return static_cast<uint32_t>(std::count_if(numbers.begin(), numbers.end(), [](const Numbers& n) { return n.earlier != n.index / 8 + 1; }));
    }
    static uint32_t n_groups_too_soon(const std::vector<Numbers>& numbers) {
        return static_cast<uint32_t>(std::count_if(numbers.begin(), numbers.end(), [](const Numbers& n) { return n.group_before == 0; }));
    }
};

TEST_P(Order, all_numbers_are_given_and_agree) {
    for (const bool is_reordered : {false, true}) {
        const auto numbers = probe(is_reordered, true);
        ASSERT_EQ(numbers.size(), kGroups * kInvocations); // by gl_GlobalInvocationID: what nobody wrote is poison
        for (uint32_t i = 0; i < numbers.size(); ++i) {
            const Numbers& n = numbers[i];
            ASSERT_EQ(n.group, i / kInvocations);
            ASSERT_EQ(n.index, i % kInvocations);
            ASSERT_EQ(n.local, n.index);
            ASSERT_EQ(n.in_subgroups, n.index);
            ASSERT_EQ(n.groups, kGroups);
            ASSERT_EQ(n.invocations, kInvocations);
        }
        EXPECT_EQ(n_seen_too_soon(numbers), 0u);
    }
}

// Where one order hides a fault, the other shows it. Only of llvmpipe do we know its order.
TEST_P(Order, shows_what_llvmpipes_own_order_hides) {
    if (device().caps.driver_id != VK_DRIVER_ID_MESA_LLVMPIPE) return;
    const auto own = probe(false, false), other = probe(true, false);
    EXPECT_EQ(n_seen_too_soon(own), 0u);
    EXPECT_GE(n_seen_too_soon(other), kGroups * 28); // of 64, in eight subgroups
    EXPECT_EQ(n_groups_too_soon(own), 0u);
    EXPECT_GE(n_groups_too_soon(other), (kGroups - 1) * kInvocations / 2); // a workgroup's own mark may come after some of it
}

INSTANTIATE_TEST_SUITE_P(, Order, ::testing::Values("order_probe", "order_probe.subgroup"), [](const auto& at) {
    return std::string_view(at.param).ends_with("subgroup") ? "subgroups" : "shared";
});

TEST(Reordered, every_module_of_the_engine_can_be) {
    for (std::string_view name : embedded_shader_names()) {
        SCOPED_TRACE(name);
        const auto spirv = embedded_shader(name);
        const auto once = reordered(spirv);
        EXPECT_GT(once.size(), spirv.size());
        EXPECT_GT(reordered(once).size(), once.size()); // which is a module, too
    }
}

TEST(Reordered, what_is_no_such_module_is_refused) {
    EXPECT_THROW(reordered(test_shader("sizes")), std::runtime_error); // two invocations along y
    const auto whole = test_shader("order_probe");
    EXPECT_THROW(reordered(whole.first(6)), std::runtime_error);
}

} // namespace
} // namespace auspex::test::order_test
