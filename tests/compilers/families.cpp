// Rows of what is allowed, and where drivers are found.
#include "compilers/families.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace auspex::test {

const std::vector<Family>& radv_families() {
    // As RADV reports them, of 10 (VEGA10), 16 or 20 subgroups of 32 lanes.
    static const std::vector<Family> all = {{"VEGA10", "RADV_FORCE_FAMILY", "radeon", "1.3.230", 3, 2},
                                            {"NAVI21", "RADV_FORCE_FAMILY", "radeon", "1.3.230", 6, 6},
                                            {"GFX1100", "RADV_FORCE_FAMILY", "radeon", "1.3.230", 6, 6}};
    return all;
}

const std::vector<Family>& shim_families() {
    // Intel's compiler tells of no subgroups at once, NVK's from Mesa 26 on, of 48 (162: 32).
    static const std::vector<Family> all = {{"tgl", "INTEL_STUB_GPU_PLATFORM", "intel", "1.", 0, 0},
                                            {"dg2", "INTEL_STUB_GPU_PLATFORM", "intel", "1.", 0, 0},
                                            {"bmg", "INTEL_STUB_GPU_PLATFORM", "intel", "1.4.", 0, 0},
                                            {"162", "NOUVEAU_CHIPSET", "nouveau", "1.", 8, 8},
                                            {"172", "NOUVEAU_CHIPSET", "nouveau", "1.", 8, 8}};
    return all;
}

namespace {

// The driver's file for the Vulkan loader; empty: not installed.
std::string icd_file(const std::string& driver) {
    const std::filesystem::path folder = "/usr/share/vulkan/icd.d";
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
        const std::string name = entry.path().filename().string();
        if (name.starts_with(driver + "_icd.") && name.find("i686") == std::string::npos) return entry.path().string();
    }
    return "";
}

bool is_of_few_rows(const std::string& constants) {
    return constants.find("ROWS=1 ") != std::string::npos || constants.find("ROWS=2 ") != std::string::npos;
}

} // namespace

std::string choose_driver(const Family& family) {
    const std::string file = icd_file(family.driver), not_asked = std::string(family.name) + ": its compiler was not asked: ";
    if (file.empty()) return not_asked + "these mesa-vulkan-drivers, if any, have no driver " + family.driver;
    std::ifstream in(file);
    const nlohmann::json icd = nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false);
    const std::string vulkan = icd.is_discarded() ? "?" : icd["ICD"].value("api_version", "?");
    if (!vulkan.starts_with(family.vulkan))
        return not_asked + "it is known by the driver for Vulkan " + family.vulkan + "; " + file + " is of another, for " + vulkan;
    const char* shim = std::getenv("LD_PRELOAD");
    if (shim && !std::filesystem::exists(shim)) return not_asked + "shims.sh has not made " + shim;
    setenv("VK_ICD_FILENAMES", file.c_str(), 1);
    unsetenv("VK_DRIVER_FILES"); // goes first where it is set
    setenv(family.variable, family.name, 1);
    setenv("NODEVICE_SELECT", "1", 1);
    setenv("NVK_I_WANT_A_BROKEN_VULKAN_DRIVER", "1", 1); // on devices of which it is not sure
    setenv("MESA_SHADER_CACHE_DISABLE", "true", 1);      // what is found there has no statistics
    return "";
}

std::string fault_of(const CompiledKernel& k, const Family& family) {
    const std::string kernel = k.name + " " + named_constants(k);
    const uint64_t budget = is_of_few_rows(kernel) ? family.few_rows : family.all;
    if (k.failed) return kernel + " does not compile";
    if (k.scratch(~0ull) == ~0ull) return kernel + ": the driver does not tell of scratch memory, or by another name";
    if (k.spills() == 0 && k.scratch() == 0 && k.occupancy() >= budget) return "";
    return kernel + ": " + std::to_string(k.registers()) + " registers, " + std::to_string(k.spills()) + " spilled, " + std::to_string(k.scratch()) +
           " bytes of scratch, " + (k.occupancy() == ~0ull ? "?" : std::to_string(k.occupancy())) + " subgroups at once, expected none, none, " +
           std::to_string(budget);
}

std::function<void(Tuning&)> sizes_that_do_not_fit(const Family& family) {
    const std::string driver = family.driver;
    return [=](Tuning& tuning) {
        tuning.matvec_many_outs = tuning.matvec_many_ahead = 4;
        if (driver == "radeon") return; // which these are already too many for
        tuning.matvec_sums = 64;
        tuning.matvec_rows = tuning.matvec_quant_rows = {1, 2, 4};
        if (driver == "nouveau") tuning.matvec_quant_rows = {1, 2, 4, 8, 16}; // Intel's compiler would take minutes over them
    };
}

} // namespace auspex::test
