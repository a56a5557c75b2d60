// The prefix cache: whatever was read before, by whom, in which chunks, and what was evicted or parked meanwhile, every text is bit for
// bit the one that a sequence says alone, of a cold cache; and the cache does find what it should. prefix_long.cpp leaves no cell out.
#include "session/prefix_cells.h"

#include <numeric>

namespace auspex::prefix_test {
namespace {

using namespace test;
using namespace test::prefix;

// ---- the tree alone

struct Pools {
    PagePool target{32}, draft{32};
    PrefixTree tree{4, target, &draft};
    PageList list(PagePool& pool, uint32_t n_rows) {
        PageList pages(pool, 4, 32);
        std::vector<PageChange> changes;
        EXPECT_TRUE(pages.grow(n_rows, changes).ok());
        return pages;
    }
};
std::vector<uint32_t> counting(uint32_t n, uint32_t first = 0) {
    std::vector<uint32_t> tokens(n);
    std::iota(tokens.begin(), tokens.end(), first);
    return tokens;
}

TEST(PrefixTree, finds_whole_pages_of_what_was_inserted) {
    Pools p;
    PageList pages = p.list(p.target, 14);
    p.tree.insert(ModelRole::target, counting(14), 14, pages); // three pages and two rows
    EXPECT_EQ(p.tree.find(counting(14), 14).target, (std::vector<uint32_t>{0, 1, 2}));
    EXPECT_EQ(p.tree.find(counting(14), 11).target, (std::vector<uint32_t>{0, 1}));
    EXPECT_EQ(p.tree.find(counting(40), 40).target.size(), 3u);
    EXPECT_TRUE(p.tree.find(counting(14, 1), 14).target.empty());
    EXPECT_EQ(p.tree.counts().rows_found, 12u + 8 + 12);
    EXPECT_EQ(p.tree.counts().n_nodes, 3u);
}

TEST(PrefixTree, a_missing_page_of_the_draft_does_not_hide_the_targets) {
    Pools p;
    PageList target = p.list(p.target, 12), draft = p.list(p.draft, 8);
    p.tree.insert(ModelRole::draft, counting(12), 8, draft); // nobody knows these tokens yet
    EXPECT_TRUE(p.tree.find(counting(12), 12).target.empty());
    p.tree.insert(ModelRole::target, counting(12), 12, target);
    p.tree.insert(ModelRole::draft, counting(12), 8, draft);
    const PrefixTree::Hit hit = p.tree.find(counting(12), 12);
    EXPECT_EQ(hit.target.size(), 3u);
    EXPECT_EQ(hit.draft.size(), 2u);
}

TEST(PrefixTree, what_nobody_uses_goes_longest_unused_and_outermost_first) {
    Pools p;
    PageList one = p.list(p.target, 12), other = p.list(p.target, 8);
    p.tree.insert(ModelRole::target, counting(12), 12, one);            // pages 0, 1, 2
    p.tree.insert(ModelRole::target, counting(8, 100), 8, other);       // 3, 4
    EXPECT_EQ(p.target.n_available(), 32u - 5);
    p.tree.give_back(ModelRole::target, 1);
    EXPECT_EQ(p.target.n_free(), 32u - 5) << "slots own them";
    one.shrink(0, 1);
    other.shrink(0, 2);
    EXPECT_EQ(p.target.n_available(), 32u);
    EXPECT_EQ(p.target.n_spare(), 5u);
    p.tree.give_back(ModelRole::target, 1);
    EXPECT_EQ(p.target.n_free(), 32u - 5) << "a turn under way may read them";
    p.target.collect(1);
    p.tree.find(counting(12), 12); // used
    p.tree.give_back(ModelRole::target, 1);
    EXPECT_EQ(p.tree.find(counting(12), 12).target.size(), 2u) << "the other's are still read";
    p.target.collect(2);
    p.tree.give_back(ModelRole::target, 2);
    EXPECT_EQ(p.tree.find(counting(12), 12).target.size(), 2u);
    EXPECT_TRUE(p.tree.find(counting(8, 100), 8).target.empty());
    p.tree.give_back(ModelRole::target, 100);
    EXPECT_EQ(p.target.n_free(), 32u);
    EXPECT_EQ(p.tree.counts().n_nodes, 0u);
    EXPECT_EQ(p.tree.counts().pages_evicted, 5u);
}

TEST(PrefixTree, the_drafts_pages_go_without_the_targets) {
    Pools p;
    PageList target = p.list(p.target, 12), draft = p.list(p.draft, 12);
    p.tree.insert(ModelRole::target, counting(12), 12, target);
    p.tree.insert(ModelRole::draft, counting(12), 12, draft);
    draft.shrink(0, 1);
    p.draft.collect(1);
    p.tree.give_back(ModelRole::draft, 2);
    EXPECT_EQ(p.draft.n_free(), 31u);
    EXPECT_EQ(p.tree.find(counting(12), 12).draft.size(), 1u);
    EXPECT_EQ(p.tree.find(counting(12), 12).target.size(), 3u);
    PageList again = p.list(p.draft, 12);
    p.tree.insert(ModelRole::draft, counting(12), 12, again);
    EXPECT_EQ(p.tree.find(counting(12), 12).draft.size(), 3u);
}

TEST(PrefixTree, a_list_that_needs_pages_takes_those_that_nobody_misses) {
    Pools p;
    PageList old = p.list(p.target, 128); // all
    p.tree.insert(ModelRole::target, counting(128), 128, old);
    old.shrink(0, 1);
    p.target.collect(1);
    EXPECT_EQ(p.target.n_free(), 0u);
    PageList pages = p.list(p.target, 120);
    EXPECT_EQ(pages.size(), 30u);
    EXPECT_EQ(p.tree.find(counting(128), 128).target.size(), 2u);
}

TEST(PrefixTree, what_one_salt_knows_is_nothing_to_another) {
    Pools p;
    PageList with = p.list(p.target, 12), without = p.list(p.target, 12), draft = p.list(p.draft, 12);
    p.tree.insert(ModelRole::target, counting(12), 12, with, "a");
    EXPECT_TRUE(p.tree.find(counting(12), 12).target.empty());
    EXPECT_TRUE(p.tree.find(counting(12), 12, "b").target.empty());
    p.tree.insert(ModelRole::target, counting(12), 12, without);
    p.tree.insert(ModelRole::draft, counting(12), 12, draft, "b"); // nobody's
    p.tree.insert(ModelRole::draft, counting(12), 12, draft, "a");
    EXPECT_EQ(p.tree.find(counting(12), 12, "a").target, (std::vector<uint32_t>{0, 1, 2}));
    EXPECT_EQ(p.tree.find(counting(12), 12, "a").draft.size(), 3u);
    EXPECT_EQ(p.tree.find(counting(12), 12).target, (std::vector<uint32_t>{3, 4, 5}));
    EXPECT_TRUE(p.tree.find(counting(12), 12).draft.empty());
    EXPECT_EQ(p.tree.counts().n_nodes, 6u);
    with.shrink(0, 1);
    without.shrink(0, 1);
    draft.shrink(0, 1);
    p.target.collect(1);
    p.draft.collect(1);
    p.tree.find(counting(12), 12, "a"); // used
    p.tree.give_back(ModelRole::target, 2);
    EXPECT_EQ(p.tree.find(counting(12), 12).target.size(), 1u) << "all salts' pages are one another's";
    p.tree.give_back(ModelRole::target, 100);
    EXPECT_EQ(p.target.n_free(), 32u);
    EXPECT_EQ(p.draft.n_free(), 32u);
    EXPECT_EQ(p.tree.counts().n_nodes, 0u);
    EXPECT_EQ(p.tree.n_salts(), 0u);
    p.tree.insert(ModelRole::target, counting(12), 12, p.list(p.target, 12), "a");
    EXPECT_EQ(p.tree.find(counting(12), 12, "a").target.size(), 3u);
}

// All of the second prompts, each after the first alone or in company, by chunks of all sizes, drafts or none.
TEST(Prefix, warm_texts_are_cold_texts) {
    ColdTexts of_rows(false), of_prompts(true);
    const uint32_t lens[] = {0, 3, kAutoDraftLen};
    uint32_t cell = 0;
    for (const uint32_t chunk : {1u, 7u, 64u, 512u})
        for (const bool in_company : {false, true}) {
            const Case c = {.prompt_kernels = cell % 4 != 3, .chunk = chunk};
            ColdTexts& cold = c.prompt_kernels ? of_prompts : of_rows;
            auto engine = make_engine(engine_of(c));
            ASSERT_TRUE(engine);
            run_job(*engine, greedy(kPrompt, 3));
            std::vector<Second> all = seconds();
            // Those of this cell, so that all cells together have each with each.
            for (size_t i = cell % 3; i < all.size(); i += 3) {
                SCOPED_TRACE(std::string(all[i].name) + ", chunks of " + std::to_string(chunk) + (in_company ? ", in company" : ", alone"));
                const Job job = greedy(all[i].prompt, lens[(cell + i) % 3]);
                const uint64_t before = found(*engine);
                std::vector<uint64_t> company;
                if (in_company)
                    for (uint64_t j = 0; j < 7; ++j) company.push_back(engine->create_sequence(greedy(random_prompt(20 + 5 * static_cast<uint32_t>(j), kVocab, 100 + 50 * cell + 10 * i + j), 3).request()).value());
                const uint64_t id = engine->create_sequence(job.request()).value();
                drive(*engine);
                expect_same(answer_of(*engine, id), cold.of(job), "warm");
                EXPECT_EQ(find_sequence(*engine, id)->cached_n, all[i].hit);
                EXPECT_GE(found(*engine) - before, all[i].hit);
                EXPECT_EQ(find_sequence(*engine, id)->prefilled_n, all[i].prompt.size() - 1 - all[i].hit);
                for (uint64_t other : company) ASSERT_TRUE(destroy_sequence(*engine, other).ok());
                ASSERT_TRUE(destroy_sequence(*engine, id).ok());
                // What this one has put in must not change what the next one finds.
                engine = make_engine(engine_of(c));
                run_job(*engine, greedy(kPrompt, 3));
            }
            ++cell;
        }
}

// A prompt's last row is computed as an answer's: a page that ends with it is not what a longer prompt would have there.
TEST(Prefix, a_prompts_last_row_is_no_row_of_a_prompt) {
    for (const bool prompt_kernels : {true, false}) {
        const Case c = {.prompt_kernels = prompt_kernels};
        ColdTexts cold(prompt_kernels);
        auto engine = make_engine(engine_of(c));
        run_job(*engine, greedy(first_of(kPrompt, 96), 3));
        const Job longer = greedy(kPrompt);
        const uint64_t id = engine->create_sequence(longer.request()).value();
        drive(*engine);
        expect_same(answer_of(*engine, id), cold.of(longer), "warm");
        EXPECT_EQ(find_sequence(*engine, id)->cached_n, prompt_kernels ? 80u : 96u);
    }
}

// With seeds whose text depends on the drafts, too: the draft model's pages are as good as the target's.
TEST(Prefix, sampled_texts_of_a_seed_are_those_of_a_cold_cache) {
    for (const bool prompt_kernels : {false, true}) {
        const Case c = {.prompt_kernels = prompt_kernels};
        ColdTexts cold(prompt_kernels);
        auto engine = make_engine(engine_of(c));
        for (const AcceptanceRule rule : {AcceptanceRule::rejection, AcceptanceRule::coupled}) {
            run_job(*engine, {.prompt = kPrompt, .max_tokens = 30, .draft_len = 3, .temperature = 0.8f, .seed = 4});
            Job job = {.prompt = joined(kPrompt, random_prompt(9, kVocab, 8)), .max_tokens = 30, .draft_len = 3, .temperature = 0.8f, .seed = 5, .with_logprobs = true};
            job.acceptance = rule;
            const uint64_t id = engine->create_sequence(job.request()).value();
            drive(*engine);
            expect_same(answer_of(*engine, id), cold.of(job), "warm");
            EXPECT_GE(find_sequence(*engine, id)->cached_n, 96u);
            EXPECT_GT(find_sequence(*engine, id)->stats.draft_n, 0u);
            ASSERT_TRUE(destroy_sequence(*engine, id).ok());
        }
    }
}

// Penalties and searches look at tokens whose rows were found; the slot has another text's tokens from before.
TEST(Prefix, what_was_found_counts_as_seen) {
    ColdTexts cold(true);
    auto engine = make_engine(engine_of({}));
    run_job(*engine, greedy(kPrompt));
    run_job(*engine, greedy(random_prompt(130, kVocab, 99))); // in the same slot
    Job job = greedy(joined(kPrompt, random_prompt(9, kVocab, 8)), 3);
    job.transforms.frequency_penalty = 0.6f;
    job.transforms.repeat_penalty = 1.4f;
    const uint64_t id = engine->create_sequence(job.request()).value();
    drive(*engine);
    expect_same(answer_of(*engine, id), cold.of(job), "warm");
    EXPECT_EQ(find_sequence(*engine, id)->cached_n, 96u);
}

// A conversation that comes again whole, answers and all: what was said is found only where it was computed as it is read.
TEST(Prefix, answers_are_found_where_rows_of_prompts_take_their_kernels) {
    for (const bool prompt_kernels : {false, true}) {
        const Case c = {.prompt_kernels = prompt_kernels};
        ColdTexts cold(prompt_kernels);
        auto engine = make_engine(engine_of(c));
        for (const uint32_t draft_len : {0u, 3u}) {
            Job job = greedy(random_prompt(60, kVocab, 20 + draft_len), draft_len);
            job.max_tokens = 60;
            const std::vector<uint32_t> answer = run_job(*engine, job).tokens;
            const Job next = greedy(joined(joined(job.prompt, answer), random_prompt(9, kVocab, 3)), draft_len);
            const uint64_t id = engine->create_sequence(next.request()).value();
            drive(*engine);
            expect_same(answer_of(*engine, id), cold.of(next), "warm");
            EXPECT_EQ(find_sequence(*engine, id)->cached_n, prompt_kernels ? 48u : 112u); // of 59, or of 119 rows
            ASSERT_TRUE(destroy_sequence(*engine, id).ok());
        }
    }
}

// What was cancelled in the middle of a round, and stopped by a text, leaves nothing but what it said.
TEST(Prefix, rounds_under_way_leave_nothing) {
    const Case c = {.prompt_kernels = false};
    ColdTexts cold(false);
    auto engine = make_engine(engine_of(c));
    for (uint64_t seed = 0; seed < 12; ++seed) {
        Job job = greedy(random_prompt(20 + static_cast<uint32_t>(seed), kVocab, 40 + seed), 4);
        job.max_tokens = 100;
        const uint64_t id = engine->create_sequence(job.request()).value();
        drive(*engine, [&] { return find_sequence(*engine, id)->stats.rounds > seed; });
        const std::vector<uint32_t> said = find_sequence(*engine, id)->tokens;
        ASSERT_TRUE(destroy_sequence(*engine, id).ok()); // with rounds under way
        const Job next = greedy(joined(said, random_prompt(40, kVocab, 60 + seed)), 3);
        const uint64_t again = engine->create_sequence(next.request()).value();
        drive(*engine);
        expect_same(answer_of(*engine, again), cold.of(next), std::to_string(seed));
        EXPECT_GT(find_sequence(*engine, again)->cached_n, 0u);
        ASSERT_TRUE(destroy_sequence(*engine, again).ok());
    }
}

TEST(Prefix, those_that_come_together_share_their_beginning) {
    ColdTexts cold(true);
    auto engine = make_engine(engine_of({.chunk = 512}));
    std::vector<uint64_t> ids;
    std::vector<Job> jobs;
    for (uint64_t i = 0; i < 8; ++i) {
        jobs.push_back(greedy(joined(kPrompt, random_prompt(5, kVocab, 70 + i)), i % 2 == 0 ? 0 : 3));
        ids.push_back(engine->create_sequence(jobs.back().request()).value());
    }
    drive(*engine);
    for (size_t i = 0; i < ids.size(); ++i) {
        expect_same(answer_of(*engine, ids[i]), cold.of(jobs[i]), std::to_string(i));
        EXPECT_EQ(find_sequence(*engine, ids[i])->cached_n, i == 0 ? 0u : 96u) << i;
    }
}

// Another salt finds nothing; the same one does, in forks and appended parts, too.
TEST(Prefix, a_salt_parts_who_shares) {
    ColdTexts cold(true);
    auto engine = make_engine(engine_of({.chunk = 64}));
    const auto create = [&](const Job& job, const char* salt) {
        SequenceRequest request = job.request();
        request.cache_salt = salt;
        return engine->create_sequence(request).value();
    };
    const Job job = greedy(kPrompt, 3);
    const struct {
        const char* salt;
        uint32_t hit;
    } asked[] = {{"a", 0}, {"", 0}, {"b", 0}, {"a", 96}, {"", 96}, {"ab", 0}};
    for (const auto& one : asked) {
        const uint64_t id = create(job, one.salt);
        drive(*engine);
        EXPECT_EQ(find_sequence(*engine, id)->cached_n, one.hit) << one.salt;
        expect_same(answer_of(*engine, id), cold.of(job), one.salt);
    }
}

// Whatever they ask for themselves.
TEST(Prefix, forks_and_appended_parts_have_the_salt_of_what_they_go_on_from) {
    auto engine = make_engine(engine_of({.prompt_kernels = false})); // answers' rows are shared, too
    SequenceRequest request = greedy(kPrompt).request();
    request.cache_salt = "a";
    const uint64_t source = engine->create_sequence(request).value();
    drive(*engine);
    SequenceRequest next = greedy({}).request();
    next.cache_salt = "b";
    const uint64_t fork = engine->fork_sequence(source, next).value();
    drive(*engine);
    next.prompt = random_prompt(40, kVocab, 8);
    ASSERT_TRUE(engine->append_sequence(fork, next).ok());
    drive(*engine);
    request.prompt = find_sequence(*engine, fork)->tokens;
    ASSERT_GT(request.prompt.size(), 100u + 24 + 40);
    ASSERT_TRUE(destroy_sequence(*engine, fork).ok());
    for (const char* salt : {"b", "a"}) {
        request.cache_salt = salt;
        const uint64_t id = engine->create_sequence(request).value();
        drive(*engine);
        const auto whole_pages = static_cast<uint32_t>((request.prompt.size() - 1) / kPage * kPage);
        EXPECT_EQ(find_sequence(*engine, id)->cached_n, salt[0] == 'a' ? whole_pages : 0u) << salt;
    }
}

// Pages for one sequence: beginnings are evicted and read again, sequences are parked and find theirs.
TEST(Prefix, evicted_and_parked_texts_are_cold_texts) {
    for (const bool prompt_kernels : {false, true}) {
        const Case c = {.prompt_kernels = prompt_kernels, .chunk = 64, .slots = 4, .cache_tokens = kContext};
        ColdTexts cold(prompt_kernels);
        auto engine = make_engine(engine_of(c));
        std::vector<Job> jobs;
        std::vector<uint64_t> ids;
        for (uint64_t i = 0; i < 10; ++i) {
            const std::vector<uint32_t> beginning = i % 2 == 0 ? kPrompt : random_prompt(100, kVocab, 200 + i); // all in all 23 whole pages: not all can stay
            Job job = greedy(joined(first_of(beginning, 20 + 16 * (i % 6)), random_prompt(7, kVocab, 80 + i % 4)), i % 3 == 0 ? 0 : 3);
            job.max_tokens = 60;
            if (i % 3 == 1) job.temperature = 0.8f, job.seed = i; // its text depends on the draft model's rows, too
            jobs.push_back(job);
            ids.push_back(engine->create_sequence(job.request()).value());
        }
        uint32_t n_steps = 0;
        drive(*engine, [&] {
            if (++n_steps % 7 == 0) {
                const uint64_t id = ids[n_steps / 7 % ids.size()];
                EXPECT_TRUE(engine->admission().park(id).ok());
                EXPECT_TRUE(engine->admission().resume(id).ok());
            }
            return false;
        });
        for (size_t i = 0; i < ids.size(); ++i) expect_same(answer_of(*engine, ids[i]), cold.of(jobs[i]), std::to_string(i));
        const EngineLoad load = engine->scheduler().load();
        EXPECT_GT(load.prefix.pages_evicted, 0u);
        EXPECT_GT(load.prefix.rows_found, 200u);
        EXPECT_GT(load.n_parked, 4u);
        for (uint64_t id : ids) ASSERT_TRUE(destroy_sequence(*engine, id).ok());
        drive(*engine);
        EXPECT_EQ(engine->scheduler().load().target_pages_free, 16u);
        EXPECT_EQ(engine->scheduler().load().draft_pages_free, 16u);
    }
}

} // namespace
} // namespace auspex::prefix_test
