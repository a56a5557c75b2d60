// What is left in the caches: drafting, rejecting and going on leaves the same bits as never having drafted; slots do not
// touch each other's, whatever they do.
#include "session/gpu_contents.h"
#include "session/engine_fixture.h"

namespace auspex::cache_test {
namespace {

using namespace test;

constexpr uint32_t kVocab = 83;

EngineDesc pair(uint32_t slots, uint32_t context, DType cache = DType::f16) {
    EngineDesc desc;
    desc.target_synthetic = random_model({.d = 72, .layers = 2, .heads = 3, .ffn = 100, .vocab = kVocab, .scale = 0.2f}, 1);
    desc.draft_synthetic = random_model({.d = 40, .layers = 2, .heads = 2, .ffn = 50, .vocab = kVocab, .scale = 0.2f}, 2);
    desc.max_sequences = slots;
    desc.max_context = context;
    desc.cache_dtype = cache;
    desc.adjust_tuning = [](Tuning& tuning) { tuning.prompt_by_rows = false; }; // two families in one cache
    return desc;
}

// Both caches of a finished sequence.
struct Remains {
    std::vector<uint32_t> tokens;
    uint32_t target_rows, draft_rows;
    std::vector<std::byte> target, draft;
};
Remains remains_of(Engine& engine, uint64_t id, uint32_t target_rows, uint32_t draft_rows) {
    const LiveSequence& sequence = *find_sequence(engine, id);
    const gpu::SlotState state = slot_state(engine, sequence.slot->number);
    EXPECT_EQ(state.target_len + 1, sequence.tokens.size());
    EXPECT_EQ(state.draft_cache_len, sequence.draft_rows);
    EXPECT_LE(target_rows, sequence.target_len);
    EXPECT_LE(draft_rows, sequence.draft_rows);
    return {sequence.tokens, target_rows, draft_rows, cache_rows(engine, engine.target(), sequence.slot->number, target_rows),
            cache_rows(engine, *engine.draft(), sequence.slot->number, draft_rows)};
}

// The same text without a single draft. The draft then catches up with it; what follows is not looked at.
Remains never_drafted(Engine& engine, const Job& job, uint32_t target_rows, uint32_t draft_rows) {
    auto id = engine.create_sequence({job.prompt, job.max_tokens + 20, {0, 1}, 0, true});
    const LiveSequence& sequence = *find_sequence(engine, id.value());
    bool told = false;
    drive(engine, [&] {
        if (!told && sequence.output.size() > job.max_tokens) {
            EXPECT_EQ(sequence.stats.draft_n, 0u);
            told = set_draft_len(engine, id.value(), 1).ok();
        }
        return false;
    });
    Remains r = remains_of(engine, id.value(), target_rows, draft_rows);
    EXPECT_TRUE(destroy_sequence(engine, id.value()).ok());
    return r;
}

struct RewindCase {
    uint32_t slots;
    DType cache;
    DrafterChoice drafter = DrafterChoice::model; // hybrid: rounds that leave the draft cache behind, and others
};
class Rewind : public ::testing::TestWithParam<RewindCase> {};

TEST_P(Rewind, redone_is_never_drafted) {
    const uint32_t slots = GetParam().slots;
    auto engine = make_engine(pair(slots, 192, GetParam().cache));
    ASSERT_TRUE(engine);
    std::vector<Job> jobs;
    for (uint32_t i = 0; i < std::max(slots, 4u); ++i)
        jobs.push_back({.prompt = random_prompt(1 + i * 11 % 67, kVocab, i), .max_tokens = slots == 64 ? 12u : 80u, .draft_len = 1 + i % 8, .drafter = GetParam().drafter, .ngram_max = 2}); // 2: one token in common is a match
    const bool by_model = GetParam().drafter == DrafterChoice::model;
    uint32_t ngram_rounds = 0, model_rounds = 0;
    for (size_t begin = 0; begin < jobs.size(); begin += slots) {
        std::vector<uint64_t> ids;
        for (size_t i = begin; i < std::min<size_t>(begin + slots, jobs.size()); ++i) ids.push_back(engine->create_sequence(jobs[i].request()).value());
        drive(*engine);
        ASSERT_FALSE(HasFatalFailure());
        std::vector<Remains> drafted;
        uint32_t rejected = 0;
        for (uint64_t id : ids) {
            const LiveSequence& sequence = *find_sequence(*engine, id);
            drafted.push_back(remains_of(*engine, id, sequence.target_len, sequence.draft_rows));
            rejected += sequence.stats.draft_n - sequence.stats.draft_n_accepted;
            if (by_model) { EXPECT_GE(sequence.draft_rows + 2, sequence.target_len); } // it was drafting to the end
            ngram_rounds += sequence.stats.drafter_rounds[static_cast<size_t>(Drafter::ngram)];
            model_rounds += sequence.stats.drafter_rounds[static_cast<size_t>(Drafter::model)];
        }
        EXPECT_GT(rejected, 0u);
        for (uint64_t id : ids) ASSERT_TRUE(destroy_sequence(*engine, id).ok());
        for (size_t i = 0; i < ids.size(); i += slots == 64 ? 8 : 1) { // at 64 slots every eighth is enough
            const Job& job = jobs[begin + i];
            Remains plain = never_drafted(*engine, job, drafted[i].target_rows, drafted[i].draft_rows);
            ASSERT_FALSE(HasFatalFailure());
            plain.tokens.resize(drafted[i].tokens.size());
            EXPECT_EQ(plain.tokens, drafted[i].tokens);
            EXPECT_EQ(first_difference(engine->target().cache().shape(), plain.target, drafted[i].target), "") << "target, draft_len " << job.draft_len;
            EXPECT_EQ(first_difference(engine->draft()->cache().shape(), plain.draft, drafted[i].draft), "") << "draft, draft_len " << job.draft_len;
        }
    }
    EXPECT_EQ(ngram_rounds > 0, !by_model);
    EXPECT_GT(model_rounds, 0u);
}

INSTANTIATE_TEST_SUITE_P(slots, Rewind,
                         ::testing::Values(RewindCase{1, DType::f16}, RewindCase{8, DType::f32}, RewindCase{64, DType::f16}, RewindCase{2, DType::q8_0},
                                           RewindCase{1, DType::f16, DrafterChoice::hybrid}, RewindCase{8, DType::q8_0, DrafterChoice::hybrid}),
                         [](const auto& at) { return std::to_string(at.param.slots) + "_" + std::string(dtype_name(at.param.cache)) + (at.param.drafter == DrafterChoice::hybrid ? "_hybrid" : ""); });

class Forked : public ::testing::TestWithParam<DType> {};

// Full pages are shared and the last one is copied, with all that belongs to its rows, in both models.
TEST_P(Forked, rows_are_those_of_the_source) {
    auto engine = make_engine(pair(4, 160, GetParam()));
    ASSERT_TRUE(engine);
    for (uint32_t n : {6u, 17u, 38u}) { // the last prompt token is not in the cache: 5, 16 and 37 rows
        const Job job = {.prompt = random_prompt(n, kVocab, n), .max_tokens = 30, .draft_len = 3};
        const Answer alone = run_job(*engine, job);
        auto source = engine->create_sequence({job.prompt, kHoldTokens, {0, 1}, 3, true});
        ASSERT_TRUE(source.ok());
        drive(*engine);
        auto fork = engine->fork_sequence(source.value(), {{}, 30, {0, 1}, 3, true});
        ASSERT_TRUE(fork.ok());
        drive(*engine);
        ASSERT_FALSE(HasFatalFailure());
        const LiveSequence &from = *find_sequence(*engine, source.value()), &to = *find_sequence(*engine, fork.value());
        ASSERT_NE(from.slot->number, to.slot->number);
        ASSERT_EQ(from.target_len, n - 1);
        EXPECT_EQ(answer_of(*engine, fork.value()).tokens, alone.tokens);
        for (const LlamaModel* model : std::initializer_list<const LlamaModel*>{&engine->target(), engine->draft()}) {
            const uint32_t rows = model == engine->draft() ? std::min(n - 1, from.draft_rows) : n - 1;
            const auto expected = cache_rows(*engine, *model, from.slot->number, rows), found = cache_rows(*engine, *model, to.slot->number, rows);
            EXPECT_EQ(first_difference(model->cache().shape(), found, expected), "") << rows << " rows";
        }
        for (uint64_t id : {source.value(), fork.value()}) ASSERT_TRUE(destroy_sequence(*engine, id).ok());
        drive(*engine);
    }
}

INSTANTIATE_TEST_SUITE_P(cache, Forked, ::testing::Values(DType::f16, DType::q8_0), [](const auto& at) { return std::string(dtype_name(at.param)); });

class Company : public ::testing::TestWithParam<uint32_t> {}; // slots

// At a fixed draft_len a slot's text is its own, greedy or sampled, while others come, go, fork and change their minds.
TEST_P(Company, a_slots_text_is_the_same_alone) {
    auto engine = make_engine(pair(GetParam(), 256));
    ASSERT_TRUE(engine);
    const std::vector<Job> watched = {
        {.prompt = random_prompt(30, kVocab, 1), .max_tokens = 100, .draft_len = 3, .temperature = 0},
        {.prompt = random_prompt(2, kVocab, 2), .max_tokens = 100, .draft_len = 2, .temperature = 1.0f, .seed = 8},
        {.prompt = random_prompt(70, kVocab, 3), .max_tokens = 100, .draft_len = 5, .temperature = 0.7f, .seed = 9},
        {.prompt = random_prompt(18, kVocab, 4), .max_tokens = 100, .draft_len = 0, .temperature = 1.3f, .seed = 10},
    };
    std::vector<Answer> alone;
    for (const Job& job : watched) alone.push_back(run_job(*engine, job));
    std::vector<uint64_t> ids, others;
    std::vector<size_t> started;
    uint64_t dice = 12345;
    auto roll = [&](uint64_t n) {
        dice = dice * 6364136223846793005u + 1442695040888963407u;
        return (dice >> 33) % n;
    };
    auto stir = [&] {
        if (ids.size() < watched.size() && roll(3) == 0) {
            auto id = engine->create_sequence(watched[ids.size()].request());
            if (id.ok()) ids.push_back(id.value());
        }
        const SamplingParams sampling = {static_cast<float>(roll(3)) * 0.8f, roll(1000)};
        const uint32_t draft_len = static_cast<uint32_t>(roll(9)), n = 1 + static_cast<uint32_t>(roll(60));
        switch (roll(8)) {
        case 0:
        case 1:
        case 2:
            if (auto id = engine->create_sequence({random_prompt(n, kVocab, roll(99)), 1 + n, sampling, draft_len, true}); id.ok()) others.push_back(id.value());
            break;
        case 3:
            if (others.empty()) break;
            if (auto id = engine->fork_sequence(others[roll(others.size())], {{}, n, sampling, draft_len, true}); id.ok()) others.push_back(id.value());
            break;
        case 4: // a fork of a watched one is company too
            if (ids.empty()) break;
            if (auto id = engine->fork_sequence(ids[roll(ids.size())], {{}, n, sampling, draft_len, true}); id.ok()) others.push_back(id.value());
            break;
        case 5:
            if (!others.empty()) { EXPECT_TRUE(set_draft_len(*engine, others[roll(others.size())], draft_len).ok()); }
            break;
        case 6:
            if (!others.empty()) { EXPECT_TRUE(cancel_sequence(*engine, others[roll(others.size())]).ok()); }
            break;
        default:
            if (others.empty()) break;
            const size_t victim = roll(others.size());
            EXPECT_TRUE(destroy_sequence(*engine, others[victim]).ok());
            others.erase(others.begin() + static_cast<ptrdiff_t>(victim));
        }
        // Room for the watched ones.
        while (ids.size() < watched.size() && others.size() + watched.size() > GetParam()) {
            EXPECT_TRUE(destroy_sequence(*engine, others.back()).ok());
            others.pop_back();
        }
    };
    drive(*engine, [&] {
        stir();
        return ids.size() == watched.size() && std::all_of(ids.begin(), ids.end(), [&](uint64_t id) { return find_sequence(*engine, id)->stop != StopReason::none; });
    });
    while (ids.size() < watched.size() && !HasFatalFailure()) // the company ran dry
        drive(*engine, [&] {
            stir();
            return ids.size() == watched.size();
        });
    drive(*engine);
    ASSERT_FALSE(HasFatalFailure());
    for (size_t i = 0; i < watched.size(); ++i) {
        const Answer answer = answer_of(*engine, ids[i]);
        EXPECT_EQ(answer.tokens, alone[i].tokens) << "watched sequence " << i;
        EXPECT_EQ(answer.origins, alone[i].origins) << "watched sequence " << i;
    }
    for (uint64_t id : ids) ASSERT_TRUE(destroy_sequence(*engine, id).ok());
    for (uint64_t id : others) ASSERT_TRUE(destroy_sequence(*engine, id).ok());
    drive(*engine);
    const KvCache& cache = engine->target().cache();
    EXPECT_EQ(cache.n_free_pages(), cache.shape().n_pages);
    EXPECT_EQ(engine->draft()->cache().n_free_pages(), engine->draft()->cache().shape().n_pages);
}

INSTANTIATE_TEST_SUITE_P(slots, Company, ::testing::Values(8u, 64u));

} // namespace
} // namespace auspex::cache_test
