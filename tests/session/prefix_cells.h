// Engines whose texts must not depend on what was read before, and prompts that share more or less of their beginning.
#pragma once

#include "session/same_answer.h"

namespace auspex::test::prefix {

constexpr uint32_t kVocab = 61, kContext = 256, kPage = 16, kMaxDraft = 4;

inline std::vector<uint32_t> first_of(std::vector<uint32_t> tokens, size_t n) {
    tokens.resize(n);
    return tokens;
}
inline std::vector<uint32_t> joined(std::vector<uint32_t> a, const std::vector<uint32_t>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

struct Case {
    bool prompt_kernels = true; // of their own, as on GPUs; false: rows of prompts and of answers share theirs, as on CPUs. Then a mistake would not show
    uint32_t chunk = 0;
    uint32_t slots = 8;
    uint64_t cache_tokens = 0;
    bool prefix_cache = true;
};
inline EngineDesc engine_of(const Case& c) {
    const Shape shape = {.vocab = kVocab, .scale = 0.2f};
    EngineDesc desc;
    desc.target_synthetic = random_model(shape, 1);
    desc.draft_synthetic = random_model(shape, 2);
    desc.max_sequences = c.slots;
    desc.max_waiting = 16;
    desc.max_context = kContext;
    desc.max_draft_len = kMaxDraft;
    desc.cache_tokens = c.cache_tokens;
    desc.prefix_cache = c.prefix_cache;
    desc.max_replay_rows = c.chunk;
    desc.adjust_tuning = [by_rows = !c.prompt_kernels](Tuning& tuning) { tuning.prompt_by_rows = by_rows; };
    return desc;
}
inline Job greedy(std::vector<uint32_t> prompt, uint32_t draft_len = 0) {
    return {.prompt = std::move(prompt), .max_tokens = 24, .draft_len = draft_len, .with_logprobs = true, .n_logprobs = 3};
}
inline uint64_t found(Engine& engine) { return engine.scheduler().load().prefix.rows_found; }

// What a sequence says alone, of a cold cache. Log-probabilities tell of any bit of the rows before, greedy tokens of few.
class ColdTexts {
  public:
    explicit ColdTexts(bool prompt_kernels) : engine_(make_engine(engine_of({.prompt_kernels = prompt_kernels, .slots = 1, .prefix_cache = false}))) {}
    Answer of(Job job) {
        if (job.temperature == 0 || job.acceptance == AcceptanceRule::coupled) job.draft_len = 0;
        return run_job(*engine_, job);
    }

  private:
    std::unique_ptr<Engine> engine_;
};

inline const std::vector<uint32_t> kPrompt = random_prompt(100, kVocab, 11); // six pages and four tokens

struct Second {
    const char* name;
    std::vector<uint32_t> prompt;
    uint64_t hit; // rows, after kPrompt was read
};
inline std::vector<Second> seconds() {
    return {{"the same", kPrompt, 96},
            {"longer", joined(kPrompt, random_prompt(30, kVocab, 5)), 96},
            {"shorter", first_of(kPrompt, 70), 64},
            {"diverges inside a page", joined(first_of(kPrompt, 40), random_prompt(50, kVocab, 6)), 32},
            {"diverges at a page's end", joined(first_of(kPrompt, 48), random_prompt(50, kVocab, 7)), 48},
            {"ends one after a page", first_of(kPrompt, 97), 96},
            {"ends with a page: its last row is an answer's", first_of(kPrompt, 96), 80},
            {"is nothing but a page and a token", first_of(kPrompt, 17), 16},
            {"is a page", first_of(kPrompt, 16), 0}};
}

} // namespace auspex::test::prefix
