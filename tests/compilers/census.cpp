// Prepares an engine on a null device for requests of every kind.
#include "compilers/census.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

namespace auspex::test {

const std::vector<Workload>& workloads() {
    static const std::vector<Workload> all = {
        {"pair", DType::bf16, 0, 0, 0, 0, 0, 0, 0},
        {"1b q4_0", DType::q4_0, 2048, 1, 8192, 32, 8, 64, 128256},
        {"3b bf16", DType::bf16, 3072, 1, 8192, 24, 8, 128, 128256},
        {"1b f16", DType::f16, 2048, 1, 8192, 32, 8, 64, 128256},
        {"1b q8_0", DType::q8_0, 2048, 1, 8192, 32, 8, 64, 128256},
        {"1b q4_k", DType::q4_k, 2048, 1, 8192, 32, 8, 64, 128256},
        {"1b q6_k", DType::q6_k, 2048, 1, 8192, 32, 8, 64, 128256},
        {"1b bf16, f32 cache", DType::bf16, 2048, 1, 8192, 32, 8, 64, 128256, DType::f32},
        {"1b bf16, q8_0 cache", DType::bf16, 2048, 1, 8192, 32, 8, 64, 128256, DType::q8_0},
    };
    return all;
}

namespace {

SyntheticModel model_of(const Workload& w) {
    SyntheticModel model;
    model.config.hidden_size = w.hidden_size;
    model.config.n_layers = w.n_layers;
    model.config.ffn_size = w.ffn_size;
    model.config.n_heads = w.n_heads;
    model.config.n_kv_heads = w.n_kv_heads;
    model.config.head_dim = w.head_dim;
    model.config.vocab_size = w.vocab_size;
    model.config.max_position = 4096;
    model.config.tied_embedding = true;
    model.dtype = w.dtype;
    model.on_device = true;
    return model;
}

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
    EngineDesc desc;
    if (workload.hidden_size == 0) {
        desc.target_path = std::string(AUSPEX_PAIR_DIR) + "/target";
        desc.draft_path = std::string(AUSPEX_PAIR_DIR) + "/draft";
    } else {
        desc.target_synthetic = desc.draft_synthetic = model_of(workload);
    }
    desc.device.hook = null_device();
    desc.max_sequences = 2;
    desc.max_context = 1024;
    desc.max_draft_len = kMaxDraft;
    desc.cache_dtype = workload.cache_dtype;
    desc.adjust_tuning = adjust;
    const Logger log = {[](LogLevel level, std::string_view text) {
        if (level >= LogLevel::warning) std::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()), text.data());
    }};
    AUSPEX_TRY_ASSIGN(engine, Engine::create(desc, log));
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
