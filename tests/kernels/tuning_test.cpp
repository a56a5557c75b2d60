// Which kernels prompts go through follows from a device's caps, and the numerics id says so.
#include "kernels/tuning.h"

#include <gtest/gtest.h>

namespace auspex {
namespace {

DeviceCaps desktop_gpu() {
    DeviceCaps caps;
    caps.type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    caps.vendor_id = 0x10de;
    caps.subgroup_size = caps.subgroup_size_min = caps.subgroup_size_max = 32;
    caps.subgroup_size_control = caps.subgroup_shuffle = true;
    caps.max_shared_memory_bytes = 49152;
    caps.max_workgroup_invocations = 1024;
    caps.matrix = {16, 16, 16};
    return caps;
}

TEST(Tuning, sends_prompts_to_the_best_units_a_device_has) {
    const Tuning best = choose_tuning(desktop_gpu(), DType::f32);
    EXPECT_EQ(best.matmul_parts, 2u);
    EXPECT_EQ(best.matrix.k, 16u);
    EXPECT_EQ(best.numerics_id(), "n1-l32-s128-t8-pm-m2");
    for (DType rounding : {DType::f16, DType::q8_0}) EXPECT_EQ(choose_tuning(desktop_gpu(), rounding).numerics_id(), "n1-l32-s128-t8-pm-m1");

    DeviceCaps caps = desktop_gpu();
    caps.matrix = {};
    EXPECT_EQ(choose_tuning(caps).numerics_id(), "n1-l32-s128-t8-p");

    caps = desktop_gpu();
    caps.subgroup_size_control = false;
    caps.vendor_id = 0x1002; // a size nobody knows: no matrices for subgroups
    EXPECT_EQ(choose_tuning(caps).numerics_id(), "n1-l32-s128-t8-p");

    caps = desktop_gpu();
    caps.max_shared_memory_bytes = 16384; // what every device has
    EXPECT_EQ(choose_tuning(caps).numerics_id(), "n1-l32-s128-t8");

    caps = desktop_gpu();
    caps.max_workgroup_invocations = 127; // below 4 subgroups
    EXPECT_EQ(choose_tuning(caps).numerics_id(), "n1-l32-s128-t2-p");

    caps = desktop_gpu();
    caps.type = VK_PHYSICAL_DEVICE_TYPE_CPU;
    EXPECT_EQ(choose_tuning(caps).numerics_id(), "n1-l32-s128-r");
}

} // namespace
} // namespace auspex
