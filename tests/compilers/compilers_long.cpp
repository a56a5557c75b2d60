// The same of every workload, and of devices by shims: a process that has one preloaded, and a variable with a device's name, asks that
// device (ctest starts one for each); any other asks all of RADV's.
#include "compilers/families.h"

#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>
#include <set>

namespace auspex::test::compilers_long {
namespace {

// A kernel that may have registers or arrays in memory.
struct Exception {
    const char* driver; // part of its name
    const char* family; // "": any
    const char* kernel;
    const char* constants;     // part of them
    uint64_t spilled, scratch; // at most
    const char* reason;

    bool is_of(const Census& census, const Family& asked) const {
        return census.caps.driver.find(driver) != std::string::npos && (*family == 0 || asked.name == std::string(family));
    }
    bool allows(const CompiledKernel& k, const Family& asked) const {
        return k.name == kernel && named_constants(k).find(constants) != std::string::npos && !k.failed && k.spills() <= spilled && k.scratch() <= scratch &&
               k.occupancy() >= asked.all;
    }
};
const std::vector<Exception> kExceptions = {
    {"radv Mesa 22.3.", "GFX1100", "attention.subgroup", "HEAD_DIM=64 GROUP=4 CACHE_TYPE=2", 1, 1024, "it has 144 registers there; later Mesa gives it more"},
    {"NVK Mesa 2", "", "propose", "", 0, 8, "its array of two words, without a spill"},
};

const Exception* exception_for(const CompiledKernel& kernel, const Census& census, const Family& family) {
    const auto found = std::find_if(kExceptions.begin(), kExceptions.end(),
                                    [&](const Exception& one) { return one.is_of(census, family) && one.allows(kernel, family); });
    return found != kExceptions.end() ? &*found : nullptr;
}

std::vector<Family> families_here() {
    for (const Family& family : shim_families()) {
        const char* name = std::getenv(family.variable);
        if (name && std::string(name) == family.name) return {family};
    }
    return radv_families();
}

class CompilersLong : public testing::TestWithParam<Family> {
  protected:
    void SetUp() override {
        const std::string reason = choose_driver(GetParam());
        if (!reason.empty()) GTEST_SKIP() << reason;
    }
};

TEST_P(CompilersLong, hold_every_kernel_in_registers) {
    const Family& family = GetParam();
    std::set<const Exception*> unmet;
    size_t n_kernels = 0;
    for (const Workload& workload : workloads()) {
        const auto census = take_census(workload);
        ASSERT_TRUE(census.ok()) << workload.name << ": " << census.status().message();
        if (n_kernels == 0)
            for (const Exception& one : kExceptions)
                if (one.is_of(census.value(), family)) unmet.insert(&one);
        n_kernels += census.value().kernels.size();
        for (const CompiledKernel& kernel : census.value().kernels) {
            const std::string fault = fault_of(kernel, family);
            if (fault.empty()) continue;
            if (const Exception* known = exception_for(kernel, census.value(), family)) unmet.erase(known);
            else ADD_FAILURE() << family << ", " << workload.name << ": " << fault;
        }
    }
    for (const Exception* one : unmet)
        ADD_FAILURE() << "no longer an exception: " << one->kernel << " " << one->constants << " of " << family << ", " << one->driver << " (" << one->reason << ")";
    EXPECT_GT(n_kernels, 400u) << "a walk that leaves kernels out finds no fault in them";
}

TEST_P(CompilersLong, sizes_that_do_not_fit_are_seen) {
    const auto census = take_census(workloads()[1], sizes_that_do_not_fit(GetParam()));
    ASSERT_TRUE(census.ok()) << census.status().message();
    const auto& kernels = census.value().kernels;
    EXPECT_TRUE(std::any_of(kernels.begin(), kernels.end(), [&](const CompiledKernel& kernel) {
        return !fault_of(kernel, GetParam()).empty() && !exception_for(kernel, census.value(), GetParam());
    }));
}

INSTANTIATE_TEST_SUITE_P(devices, CompilersLong, testing::ValuesIn(families_here()), [](const auto& one) { return std::string(one.param.name); });

} // namespace
} // namespace auspex::test::compilers_long
