// Engines whose texts must not depend on what was read before, and prompts that share more or less of their beginning.
#pragma once

#include "session/same_answer.h"

#include <map>

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
    // As greedy() asks; many cells have the same prompt.
    const Answer& greedy_of(const std::vector<uint32_t>& prompt) {
        const auto known = greedy_.find(prompt);
        return known != greedy_.end() ? known->second : greedy_[prompt] = of(greedy(prompt));
    }

  private:
    std::unique_ptr<Engine> engine_;
    std::map<std::vector<uint32_t>, Answer> greedy_;
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

// ---- cells: a second prompt, and all that may happen to it

enum class Fate { undisturbed, beginning_evicted, parked_at_round_1, parked_at_round_2, parked_at_round_7 };
constexpr Fate kFates[] = {Fate::undisturbed, Fate::beginning_evicted, Fate::parked_at_round_1, Fate::parked_at_round_2, Fate::parked_at_round_7};
constexpr uint32_t kChunks[] = {1, 7, 64, 512};
constexpr uint32_t kDraftLens[] = {0, 3, kAutoDraftLen};

struct Cell {
    size_t second; // place in seconds()
    Fate fate;
    uint32_t chunk, draft_len;
    bool in_company, prompt_kernels;
};
inline std::string name_of(const Cell& cell) {
    const char* const fates[] = {"undisturbed", "half of the cache evicted", "parked at round 1", "parked at round 2", "parked at round 7"};
    return std::string(seconds()[cell.second].name) + ", " + fates[static_cast<size_t>(cell.fate)] + ", chunks of " + std::to_string(cell.chunk) + ", draft_len " +
           (cell.draft_len == kAutoDraftLen ? "auto" : std::to_string(cell.draft_len)) + (cell.in_company ? ", in company" : ", alone") + (cell.prompt_kernels ? "" : ", prompts by rows");
}
inline std::vector<Job> company() {
    std::vector<Job> jobs;
    for (uint32_t i = 0; i < 7; ++i) jobs.push_back(greedy(random_prompt(20 + 5 * i, kVocab, 100 + i), 3));
    return jobs;
}

// The second prompt of the cell, after the first one was read, says what it says alone, of a cold cache; so do those beside it; and it
// was found as far as it was there.
inline void expect_cold_texts(const Cell& cell, ColdTexts& cold) {
    SCOPED_TRACE(name_of(cell));
    const Second second = seconds()[cell.second];
    auto engine = make_engine(engine_of({.prompt_kernels = cell.prompt_kernels, .chunk = cell.chunk}));
    ASSERT_TRUE(engine);
    run_job(*engine, greedy(kPrompt, 3));
    ASSERT_TRUE(drain(*engine).ok()); // no turn under way holds pages back from eviction
    const PagePool& pool = engine->target().cache().pool();
    uint64_t there = second.hit;
    if (cell.fate == Fate::beginning_evicted) {
        const uint32_t n_goes = pool.n_spare() / 2;
        engine->target().cache().pool().ask_for(n_goes);
        ASSERT_EQ(engine->scheduler().load().prefix.pages_evicted, 2 * n_goes) << "of the draft as many";
        there = std::min<uint64_t>(there, pool.n_spare() * kPage);
    }
    const uint64_t before = found(*engine);
    std::vector<Job> jobs = cell.in_company ? company() : std::vector<Job>();
    jobs.push_back(greedy(second.prompt, cell.draft_len));
    std::vector<uint64_t> ids;
    for (const Job& job : jobs) ids.push_back(engine->create_sequence(job.request()).value());
    const uint64_t id = ids.back();
    const bool is_parked = cell.fate >= Fate::parked_at_round_1;
    if (is_parked) {
        const uint32_t round = cell.fate == Fate::parked_at_round_1 ? 1 : cell.fate == Fate::parked_at_round_2 ? 2 : 7;
        drive(*engine, [&] { return find_sequence(*engine, id)->stats.rounds >= round; });
        ASSERT_EQ(find_sequence(*engine, id)->stop, StopReason::none) << "it ended before it could be parked";
        ASSERT_TRUE(engine->admission().park(id).ok());
        ASSERT_TRUE(engine->admission().resume(id).ok());
    }
    drive(*engine);
    for (size_t i = 0; i < jobs.size(); ++i) expect_same(answer_of(*engine, ids[i]), cold.greedy_of(jobs[i].prompt), ids[i] == id ? "warm" : "beside it");
    const LiveSequence& sequence = *find_sequence(*engine, id);
    const uint64_t own_pages = (second.prompt.size() - 1) / kPage * kPage; // of the prompt: it finds them when it comes back
    if (is_parked) {
        EXPECT_GE(sequence.cached_n, there + own_pages);
    } else {
        EXPECT_EQ(sequence.cached_n, there);
        EXPECT_EQ(sequence.prefilled_n, second.prompt.size() - 1 - there);
    }
    EXPECT_EQ(sequence.n_parked, is_parked ? 1u : 0u);
    EXPECT_GE(found(*engine) - before, sequence.cached_n);
}

} // namespace auspex::test::prefix
