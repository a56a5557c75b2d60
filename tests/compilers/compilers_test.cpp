// What the compilers of GPUs make of every kernel with the sizes that such a device gets by default: it compiles, nothing is spilled,
// and no kernel leaves fewer subgroups at once than the table of families.cpp says. RADV has a device without hardware, up to Mesa 25.0.
#include "compilers/families.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace auspex::test::compilers_test {
namespace {

class Compilers : public testing::TestWithParam<Family> {
  protected:
    void SetUp() override {
        const std::string reason = choose_driver(GetParam());
        if (!reason.empty()) GTEST_SKIP() << reason;
    }
    static std::vector<CompiledKernel> kernels_of(const Workload& workload, const std::function<void(Tuning&)>& adjust = {}) {
        auto census = take_census(workload, adjust);
        EXPECT_TRUE(census.ok()) << workload.name << ": " << census.status().message();
        return census.ok() ? std::move(census.value().kernels) : std::vector<CompiledKernel>();
    }
};

TEST_P(Compilers, hold_every_kernel_in_registers) {
    size_t n_kernels = 0;
    for (size_t i = 0; i < 3; ++i) { // the bundled pair, 1B q4_0, 3B bf16
        for (const CompiledKernel& kernel : kernels_of(workloads()[i])) {
            EXPECT_EQ(fault_of(kernel, GetParam()), "") << GetParam().name << ", " << workloads()[i].name;
            n_kernels += 1;
        }
    }
    EXPECT_GT(n_kernels, 140u) << "a walk that leaves kernels out finds no fault in them";
}

TEST_P(Compilers, sizes_that_do_not_fit_are_seen) {
    const auto kernels = kernels_of(workloads()[1], sizes_that_do_not_fit(GetParam()));
    EXPECT_TRUE(std::any_of(kernels.begin(), kernels.end(), [](const CompiledKernel& kernel) { return !fault_of(kernel, GetParam()).empty(); }));
}

INSTANTIATE_TEST_SUITE_P(radv, Compilers, testing::ValuesIn(radv_families()), [](const auto& one) { return std::string(one.param.name); });

} // namespace
} // namespace auspex::test::compilers_test
