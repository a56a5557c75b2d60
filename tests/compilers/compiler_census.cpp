// A table of what a compiler makes of every kernel that generation takes, in Markdown on stdout.
//   compiler_census [--summary] [WORKLOAD…] [SIZE=VALUE…]
// --summary: a row per workload. WORKLOAD: see census.cpp; none: all. SIZE, instead of the device's: lanes, rows, block_rows (1,2,4), outs,
// many_outs, ahead, many_ahead, sums, teams, least_teams, staged, norm_stage_rows, attention_dims, attention_teams, prompt_dims.
// The environment names the driver: VK_ICD_FILENAMES, RADV_FORCE_FAMILY, or LD_PRELOAD of a shim (see tests/compilers/README.md).
#include "compilers/census.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <sstream>

using namespace auspex;
using namespace auspex::test;

namespace {

std::vector<uint32_t> numbers(const std::string& text) {
    std::vector<uint32_t> all;
    std::istringstream in(text);
    for (std::string one; std::getline(in, one, ',');) all.push_back(static_cast<uint32_t>(std::stoul(one)));
    return all;
}

bool set_size(Tuning& tuning, const std::string& name, const std::string& value) {
    const std::vector<uint32_t> n = numbers(value);
    if (name == "rows") tuning.matvec_rows = n;
    else if (name == "block_rows") tuning.matvec_quant_rows = n;
    else if (name == "lanes") tuning.lanes = tuning.pinned_subgroup_size = n[0];
    else if (name == "outs") tuning.matvec_outs = n[0];
    else if (name == "many_outs") tuning.matvec_many_outs = n[0];
    else if (name == "ahead") tuning.matvec_ahead = n[0];
    else if (name == "many_ahead") tuning.matvec_many_ahead = n[0];
    else if (name == "attention_teams") tuning.attention_teams = n[0];
    else if (name == "attention_dims") tuning.attention_dims = n[0];
    else if (name == "prompt_dims") tuning.prompt_dims = n[0];
    else if (name == "sums") tuning.matvec_sums = n[0];
    else if (name == "teams") tuning.matvec_teams = n[0];
    else if (name == "least_teams") tuning.matvec_least_teams = n[0];
    else if (name == "staged") tuning.matvec_staged_bytes = n[0];
    else if (name == "norm_stage_rows") tuning.norm_stage_rows = n[0];
    else return false;
    return true;
}

std::string or_dash(uint64_t value) { return value == ~0ull ? "–" : std::to_string(value); }

void print(const Workload& workload, Census census) {
    std::sort(census.kernels.begin(), census.kernels.end(),
              [](const CompiledKernel& a, const CompiledKernel& b) { return std::tie(a.name, a.constants) < std::tie(b.name, b.constants); });
    std::printf("### %s, %s, %s\n\n%s; %s. %zu kernels, %.1f s of CPU.\n\n", census.caps.name.c_str(), census.caps.driver.c_str(), workload.name,
                census.numerics.c_str(), census.sizes.c_str(), census.kernels.size(), census.compile_ms * 1e-3);
    std::printf("| kernel | constants | wave | registers | spilled | scratch | waves | instructions | shared | ms |\n|---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n");
    for (const CompiledKernel& k : census.kernels)
        std::printf("| %s | %s | %u%s | %llu | %s | %llu | %s | %llu | %llu | %.0f |\n", k.name.c_str(), named_constants(k).c_str(), k.subgroup_size,
                    k.pinned ? " pinned" : "", static_cast<unsigned long long>(k.registers()),
                    k.failed ? "FAILED" : k.spills() > 0 ? ("**" + std::to_string(k.spills()) + "**").c_str() : "0", static_cast<unsigned long long>(k.scratch()),
                    or_dash(k.occupancy()).c_str(), static_cast<unsigned long long>(k.instructions()), static_cast<unsigned long long>(k.shared_bytes()), k.ms);
    std::printf("\n");
}

// | device | driver | workload | numerics | kernels | spilling | fewest waves | CPU s |
void print_row(const Workload& workload, const Census& census) {
    uint64_t n_spilling = 0;
    const CompiledKernel* fewest = nullptr;
    for (const CompiledKernel& k : census.kernels) {
        n_spilling += k.failed || k.spills() > 0 || k.scratch() > 0 ? 1 : 0;
        if (k.occupancy() != ~0ull && (!fewest || k.occupancy() < fewest->occupancy())) fewest = &k;
    }
    std::printf("| %s | %s | %s | %s | %zu | %llu | %s | %.1f |\n", census.caps.name.c_str(), census.caps.driver.c_str(), workload.name, census.numerics.c_str(),
                census.kernels.size(), static_cast<unsigned long long>(n_spilling),
                fewest ? (std::to_string(fewest->occupancy()) + ": " + fewest->name + " " + named_constants(*fewest)).c_str() : "–", census.compile_ms * 1e-3);
}

} // namespace

int main(int argc, char** argv) {
    std::vector<std::string> wanted, sizes;
    bool summary = false;
    for (int i = 1; i < argc; ++i) {
        if (std::strcmp(argv[i], "--summary") == 0) summary = true;
        else (std::strchr(argv[i], '=') ? sizes : wanted).push_back(argv[i]);
    }
    for (const Workload& workload : workloads()) {
        if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), workload.name) == wanted.end()) continue;
        bool known = true;
        auto census = take_census(workload, [&](Tuning& tuning) {
            for (const std::string& size : sizes) known &= set_size(tuning, size.substr(0, size.find('=')), size.substr(size.find('=') + 1));
        });
        if (!known || !census.ok()) {
            std::fprintf(stderr, "compiler_census: %s: %s\n", workload.name, known ? census.status().message().c_str() : "a size is not known");
            return 1;
        }
        if (summary) print_row(workload, census.value());
        else print(workload, std::move(census).value());
    }
}
