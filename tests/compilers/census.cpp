// Prepares an engine on a null device for requests of every kind.
#include "compilers/census.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

namespace auspex::test {

const std::vector<Workload>& workloads() {
    const auto of_1b = [](DType type) { return Shape{.d = 2048, .layers = 1, .heads = 32, .kv_heads = 8, .head_dim = 64, .ffn = 8192, .vocab = 128256, .tied = true, .dtype = type}; };
    const Shape of_3b = {.d = 3072, .layers = 1, .heads = 24, .kv_heads = 8, .head_dim = 128, .ffn = 8192, .vocab = 128256, .tied = true, .dtype = DType::bf16};
    static const std::vector<Workload> all = {
        {"pair", std::nullopt},
        {"1b q4_0", of_1b(DType::q4_0)},
        {"3b bf16", of_3b},
        {"1b f16", of_1b(DType::f16)},
        {"1b q8_0", of_1b(DType::q8_0)},
        {"1b q4_k", of_1b(DType::q4_k)},
        {"1b q6_k", of_1b(DType::q6_k)},
        {"1b bf16, f32 cache", of_1b(DType::bf16), DType::f32},
        {"1b bf16, q8_0 cache", of_1b(DType::bf16), DType::q8_0},
    };
    return all;
}

namespace {

// What decides which kernels a round takes.
std::vector<SequenceRequest> requests() {
    std::vector<SequenceRequest> all(4);
    for (SequenceRequest& request : all) {
        request.drafter = DrafterChoice::automatic;
        request.draft_len = kMaxDraft;
    }
    all[1].sampling.temperature = all[2].sampling.temperature = all[3].sampling.temperature = 1;
    all[2].sampling.acceptance = AcceptanceRule::coupled;
    all[3].sampling.top_k = 40;
    all[3].sampling.top_p = 0.9f;
    all[3].sampling.min_p = 0.05f;
    all[3].sampling.repeat_penalty = 1.1f;
    return all;
}

} // namespace

Result<Census> take_census(const Workload& workload, const std::function<void(Tuning&)>& adjust) {
    compiled_kernels().clear();
    EngineDesc desc = bundled_pair(2, 1024);
    if (workload.shape) {
        SyntheticModel model = random_model(*workload.shape, 1, 4096);
        model.on_device = true;
        desc.target_path = desc.draft_path = "";
        desc.target_synthetic = desc.draft_synthetic = model;
    }
    desc.device.hook = null_device();
    desc.max_draft_len = kMaxDraft;
    desc.cache_dtype = workload.cache_dtype;
    desc.adjust_tuning = adjust;
    AUSPEX_TRY_ASSIGN(engine, Engine::create(desc, warnings_to_stderr()));
    for (const SequenceRequest& request : requests()) AUSPEX_TRY(engine->prepare(request));
    Census census;
    census.caps = engine->device().caps;
    census.sizes = engine->tuning().sizes();
    census.numerics = engine->tuning().numerics_id();
    std::set<std::pair<std::string, std::vector<uint32_t>>> seen;
    for (CompiledKernel& kernel : compiled_kernels()) {
        census.compile_ms += kernel.ms;
        if (seen.emplace(kernel.name, kernel.constants).second) census.kernels.push_back(std::move(kernel));
    }
    return census;
}

namespace {

// constant_id → name, of a module's source and what that includes.
using Names = std::map<uint32_t, std::string>;

void read_constants(const std::filesystem::path& file, Names& names, std::set<std::filesystem::path>& seen) {
    static const std::regex constant(R"(constant_id\s*=\s*(\w+)\)\s*const\s+\w+\s+(\w+))"), include(R"re(#include\s+"([^"]+)")re");
    if (!seen.insert(file).second) return;
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
        std::smatch found;
        if (std::regex_search(line, found, constant) && found[1].str().find_first_not_of("0123456789") == std::string::npos)
            names.emplace(std::stoul(found[1]), found[2]);
        if (std::regex_search(line, found, include))
            for (const auto& folder : {file.parent_path(), std::filesystem::path(AUSPEX_SHADERS), std::filesystem::path(AUSPEX_SHADERS) / "include"})
                if (std::filesystem::exists(folder / found[1].str())) read_constants(folder / found[1].str(), names, seen);
    }
}

} // namespace

std::string named_constants(const CompiledKernel& kernel) {
    static std::map<std::string, Names> known;
    const std::string source = kernel.name.substr(0, kernel.name.find('.'));
    auto [found, is_new] = known.try_emplace(source);
    if (is_new) {
        std::set<std::filesystem::path> seen;
        for (const char* folder : {"", "matrix"}) read_constants(std::filesystem::path(AUSPEX_SHADERS) / folder / (source + ".comp"), found->second, seen);
    }
    std::string text;
    for (uint32_t i = 0; i < kernel.constants.size(); ++i) {
        const auto name = found->second.find(i);
        if (name == found->second.end() || name->second == "LOCAL_SIZE" || name->second == "TEXELS") continue;
        text += (text.empty() ? "" : " ") + name->second + "=" + std::to_string(kernel.constants[i]);
    }
    return text;
}

} // namespace auspex::test
