// Speculative sampling of a tiny pair by cases: how it is drafted and transformed, and whether the counts fit.
#pragma once

#include "session/completions.h"

namespace auspex::test::sampling {

constexpr double kAlpha = 1e-6;
constexpr uint32_t kVocab = 7, kTokens = 3; // 343 completions

struct Case {
    uint32_t draft_len;
    float temperature;
    uint32_t prompt_n;  // 17: shared page; 6: copied page; 1: no page
    uint64_t completions;
    SamplingParams transforms = {}; // its temperature and seed do not count

    SamplingParams sampling(uint64_t seed) const {
        SamplingParams out = transforms;
        out.temperature = temperature;
        out.seed = seed;
        return out;
    }
};

inline std::vector<uint64_t> complete(Engine& engine, const std::vector<uint32_t>& prompt, const Case& c, uint64_t first_seed) {
    return count_completions(engine, prompt, {{}, kTokens, c.sampling(0), c.draft_len, true}, c.completions, first_seed).counts;
}

inline EngineDesc tiny_pair(uint32_t slots) { return tiny_engine(kVocab, slots, 3, true); }

inline reference::Fit judge(const std::vector<uint64_t>& counts, const std::vector<uint32_t>& prompt, double temperature,
                            const SamplingParams& transforms = {}) {
    return fit_completions(counts, kVocab, kTokens, prompt, temperature, transforms);
}

} // namespace auspex::test::sampling
