// Engines whose tuning is looked at: a small pair of models, and the same as a GPU would have it at first use.
#pragma once

#include "base/platform.h"
#include "session/engine_fixture.h"

#include <filesystem>

namespace auspex::test {

inline constexpr uint32_t kVocab = 997;

// A folder of its own, empty at first.
struct Folder {
    explicit Folder(const std::string& name) : path(std::filesystem::temp_directory_path() / ("auspex_tuning_" + name + "_" + std::to_string(now_ns()))) {
        std::filesystem::create_directories(path);
    }
    ~Folder() { std::filesystem::remove_all(path); }
    std::string kept() const { return (path / "tuning.json").string(); }
    std::filesystem::path path;
};

inline EngineDesc pair(const std::string& folder = "", TuningMode mode = TuningMode::off) {
    EngineDesc desc;
    desc.target_synthetic = random_model({.d = 96, .layers = 3, .heads = 3, .ffn = 203, .vocab = kVocab, .scale = 0.15f}, 1);
    desc.draft_synthetic = random_model({.d = 64, .layers = 1, .heads = 2, .ffn = 101, .vocab = kVocab, .tied = true, .dtype = DType::bf16}, 2);
    desc.max_context = 128;
    desc.max_draft_len = 8;
    desc.cache_folder = folder;
    desc.tuning = mode;
    desc.tuning_limits.full_ms = 2000;
    return desc;
}

// What a GPU would do at first use; llvmpipe under another name.
inline EngineDesc as_gpu(const std::string& folder, TuningMode mode) {
    EngineDesc desc = pair(folder, mode);
    desc.target_synthetic->dtype = DType::bf16;
    desc.adjust_caps = [](DeviceCaps& caps) { caps.type = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU; };
    return desc;
}

struct Lines {
    std::string text;
    Logger log() {
        return {[this](LogLevel level, std::string_view line) {
            if (level >= LogLevel::warning) text += std::string(line) + "\n";
        }};
    }
};

} // namespace auspex::test
