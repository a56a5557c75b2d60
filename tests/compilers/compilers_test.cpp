// What the compilers of GPUs make of every kernel with the sizes that such a device gets by default: it compiles, nothing is spilled,
// and no kernel leaves fewer subgroups at once than the table here says. RADV has a device without hardware, up to Mesa 25.0.
#include "compilers/census.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace auspex::test {
namespace {

// Subgroups of a SIMD at once, at least: of passes of one or two rows, of everything; as RADV 22.3.6 reports them, of 10 (VEGA10),
// 16 or 20 of 32 lanes.
struct Family {
    const char* name;
    uint64_t few_rows, all;
    friend std::ostream& operator<<(std::ostream& out, const Family& family) { return out << family.name; }
};
constexpr Family kFamilies[] = {{"VEGA10", 3, 2}, {"NAVI21", 6, 6}, {"GFX1100", 6, 6}};

// RADV's file for the Vulkan loader; empty: not installed.
std::string radv_file() {
    const std::filesystem::path folder = "/usr/share/vulkan/icd.d";
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
        const std::string name = entry.path().filename().string();
        if (name.starts_with("radeon_icd.") && name.find("i686") == std::string::npos) return entry.path().string();
    }
    return "";
}

// Why this machine cannot ask the compiler that the table is of; empty: it can, and then a device that is missing is a failure.
std::string why_not_asked(const std::string& file) {
    if (file.empty()) return "AMD's compiler was not asked: RADV (mesa-vulkan-drivers) is not installed";
    std::ifstream in(file);
    const nlohmann::json icd = nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false);
    const std::string vulkan = icd.is_discarded() ? "?" : icd["ICD"].value("api_version", "?");
    if (vulkan == "1.3.230") return "";
    return "AMD's compiler was not asked: the table is of Mesa 22.3 (Vulkan 1.3.230), as Debian 12 has it; " + file + " is of another, for Vulkan " + vulkan;
}

bool is_of_few_rows(const std::string& constants) {
    return constants.find("ROWS=1 ") != std::string::npos || constants.find("ROWS=2 ") != std::string::npos;
}

// Empty: the compiler holds the kernel as it should.
std::string fault_of(const CompiledKernel& k, const Family& family) {
    const std::string constants = named_constants(k);
    const uint64_t budget = is_of_few_rows(constants) ? family.few_rows : family.all;
    if (!k.failed && k.spills() == 0 && k.scratch() == 0 && k.occupancy() >= budget) return "";
    return k.name + " " + constants + (k.failed ? " does not compile" : "") + ": " + std::to_string(k.registers()) + " registers, " + std::to_string(k.spills()) +
           " spilled, " + std::to_string(k.scratch()) + " bytes of scratch, " + std::to_string(k.occupancy()) + " subgroups at once, expected none, none, " +
           std::to_string(budget);
}

class Compilers : public testing::TestWithParam<Family> {
  protected:
    void SetUp() override {
        const std::string file = radv_file(), reason = why_not_asked(file);
        if (!reason.empty()) GTEST_SKIP() << reason;
        setenv("VK_ICD_FILENAMES", file.c_str(), 1);
        unsetenv("VK_DRIVER_FILES"); // goes first where it is set
        setenv("RADV_FORCE_FAMILY", GetParam().name, 1);
        setenv("NODEVICE_SELECT", "1", 1);
        setenv("MESA_SHADER_CACHE_DISABLE", "true", 1); // what is found there has no statistics
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
    const auto kernels = kernels_of(workloads()[1], [](Tuning& tuning) { tuning.matvec_many_outs = tuning.matvec_many_ahead = 4; });
    EXPECT_TRUE(std::any_of(kernels.begin(), kernels.end(), [](const CompiledKernel& kernel) { return !fault_of(kernel, GetParam()).empty(); }));
}

INSTANTIATE_TEST_SUITE_P(radv, Compilers, testing::ValuesIn(kFamilies), [](const auto& one) { return std::string(one.param.name); });

} // namespace
} // namespace auspex::test
