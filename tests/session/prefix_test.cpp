// The prefix cache: whatever was read before, by whom, in which chunks, and what was evicted or parked meanwhile, every text is bit for
// bit the one that a sequence says alone, of a cold cache; and the cache does find what it should. prefix_long.cpp leaves no cell out.
#include "session/prefix_cells.h"

#include <array>
#include <numeric>
#include <set>

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
    EXPECT_EQ(p.tree.find(counting(14), 0, 14).target, (std::vector<uint32_t>{0, 1, 2}));
    EXPECT_EQ(p.tree.find(counting(14), 0, 11).target, (std::vector<uint32_t>{0, 1}));
    EXPECT_EQ(p.tree.find(counting(40), 0, 40).target.size(), 3u);
    EXPECT_TRUE(p.tree.find(counting(14, 1), 0, 14).target.empty());
    EXPECT_EQ(p.tree.counts().rows_found, 12u + 8 + 12);
    EXPECT_EQ(p.tree.counts().n_nodes, 3u);
}

TEST(PrefixTree, a_missing_page_of_the_draft_does_not_hide_the_targets) {
    Pools p;
    PageList target = p.list(p.target, 12), draft = p.list(p.draft, 8);
    p.tree.insert(ModelRole::draft, counting(12), 8, draft); // nobody knows these tokens yet
    EXPECT_TRUE(p.tree.find(counting(12), 0, 12).target.empty());
    p.tree.insert(ModelRole::target, counting(12), 12, target);
    p.tree.insert(ModelRole::draft, counting(12), 8, draft);
    const PrefixTree::Hit hit = p.tree.find(counting(12), 0, 12);
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
    p.tree.find(counting(12), 0, 12); // used
    p.tree.give_back(ModelRole::target, 1);
    EXPECT_EQ(p.tree.find(counting(12), 0, 12).target.size(), 2u) << "the other's are still read";
    p.target.collect(2);
    p.tree.give_back(ModelRole::target, 2);
    EXPECT_EQ(p.tree.find(counting(12), 0, 12).target.size(), 2u);
    EXPECT_TRUE(p.tree.find(counting(8, 100), 0, 8).target.empty());
    p.tree.give_back(ModelRole::target, 100);
    EXPECT_EQ(p.target.n_free(), 32u);
    EXPECT_EQ(p.tree.counts().n_nodes, 0u);
    EXPECT_EQ(p.tree.counts().pages_evicted, 5u);
}

// Two said the same, and the second went on: the tree has the pages of the first, and behind them those of the second.
TEST(PrefixTree, a_page_that_leads_to_anothers_goes_last_but_goes) {
    for (const ModelRole of : {ModelRole::target, ModelRole::draft}) {
        Pools p;
        PagePool& pool = of == ModelRole::target ? p.target : p.draft;
        PageList first = p.list(pool, 8), second = p.list(pool, 12), unrelated = p.list(pool, 4);
        if (of == ModelRole::draft) p.tree.insert(ModelRole::target, counting(12), 12, p.list(p.target, 12));
        if (of == ModelRole::draft) p.tree.insert(ModelRole::target, counting(4, 100), 4, p.list(p.target, 4));
        const auto n_known = [&] {
            const PrefixTree::Hit hit = p.tree.find(counting(12), 0, 12);
            return (of == ModelRole::target ? hit.target : hit.draft).size();
        };
        p.tree.insert(of, counting(12), 8, first);
        p.tree.insert(of, counting(12), 12, second);
        EXPECT_EQ(n_known(), 3u);
        p.tree.insert(of, counting(4, 100), 4, unrelated);
        first.shrink(0, 1);
        unrelated.shrink(0, 1);
        pool.collect(1);
        EXPECT_EQ(pool.n_spare(), 3u);
        p.tree.give_back(of, 1);
        EXPECT_EQ(n_known(), 3u) << "the unrelated one leads to none";
        for (uint32_t n = 2; n > 0; --n) {
            EXPECT_EQ(pool.n_spare(), n);
            p.tree.give_back(of, 1);
            EXPECT_LT(n_known(), n);
        }
        EXPECT_EQ(pool.n_free(), 32u - 3) << "the second's are its own";
        EXPECT_EQ(pool.n_available(), pool.n_free());
        second.shrink(0, 2);
        pool.collect(2);
        p.tree.give_back(of, 100);
        EXPECT_EQ(pool.n_free(), 32u);
    }
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
    EXPECT_EQ(p.tree.find(counting(12), 0, 12).draft.size(), 1u);
    EXPECT_EQ(p.tree.find(counting(12), 0, 12).target.size(), 3u);
    PageList again = p.list(p.draft, 12);
    p.tree.insert(ModelRole::draft, counting(12), 12, again);
    EXPECT_EQ(p.tree.find(counting(12), 0, 12).draft.size(), 3u);
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
    EXPECT_EQ(p.tree.find(counting(128), 0, 128).target.size(), 2u);
}

TEST(PrefixTree, what_one_salt_knows_is_nothing_to_another) {
    Pools p;
    PageList with = p.list(p.target, 12), without = p.list(p.target, 12), draft = p.list(p.draft, 12);
    p.tree.insert(ModelRole::target, counting(12), 12, with, "a");
    EXPECT_TRUE(p.tree.find(counting(12), 0, 12).target.empty());
    EXPECT_TRUE(p.tree.find(counting(12), 0, 12, "b").target.empty());
    p.tree.insert(ModelRole::target, counting(12), 12, without);
    p.tree.insert(ModelRole::draft, counting(12), 12, draft, "b"); // nobody's
    p.tree.insert(ModelRole::draft, counting(12), 12, draft, "a");
    EXPECT_EQ(p.tree.find(counting(12), 0, 12, "a").target, (std::vector<uint32_t>{0, 1, 2}));
    EXPECT_EQ(p.tree.find(counting(12), 0, 12, "a").draft.size(), 3u);
    EXPECT_EQ(p.tree.find(counting(12), 0, 12).target, (std::vector<uint32_t>{3, 4, 5}));
    EXPECT_TRUE(p.tree.find(counting(12), 0, 12).draft.empty());
    EXPECT_EQ(p.tree.counts().n_nodes, 6u);
    with.shrink(0, 1);
    without.shrink(0, 1);
    draft.shrink(0, 1);
    p.target.collect(1);
    p.draft.collect(1);
    p.tree.find(counting(12), 0, 12, "a"); // used
    p.tree.give_back(ModelRole::target, 2);
    EXPECT_EQ(p.tree.find(counting(12), 0, 12).target.size(), 1u) << "all salts' pages are one another's";
    p.tree.give_back(ModelRole::target, 100);
    EXPECT_EQ(p.target.n_free(), 32u);
    EXPECT_EQ(p.draft.n_free(), 32u);
    EXPECT_EQ(p.tree.counts().n_nodes, 0u);
    EXPECT_EQ(p.tree.n_salts(), 0u);
    p.tree.insert(ModelRole::target, counting(12), 12, p.list(p.target, 12), "a");
    EXPECT_EQ(p.tree.find(counting(12), 0, 12, "a").target.size(), 3u);
}

// As few cells as have each value of one dimension with each of every other one. prefix_long.cpp leaves none out.
TEST(Prefix, warm_texts_are_cold_texts) {
    std::vector<Cell> cells;
    for (size_t second = 0; second < seconds().size(); ++second)
        for (size_t fate = 0; fate < std::size(kFates); ++fate) {
            const size_t at = second + fate;
            cells.push_back({second, kFates[fate], kChunks[at % 4], kDraftLens[at % 3], at / 3 % 2 == 1, (second + 2 * fate) % 5 != 0});
        }
    const auto values = [](const Cell& c) { return std::array<uint64_t, 6>{c.second, static_cast<uint64_t>(c.fate), c.chunk, c.draft_len, c.in_company, c.prompt_kernels}; };
    const size_t n_values[] = {seconds().size(), std::size(kFates), std::size(kChunks), std::size(kDraftLens), 2, 2};
    for (size_t a = 0; a < 6; ++a)
        for (size_t b = 0; b < a; ++b) {
            std::set<std::pair<uint64_t, uint64_t>> pairs;
            for (const Cell& cell : cells) pairs.emplace(values(cell)[a], values(cell)[b]);
            ASSERT_EQ(pairs.size(), n_values[a] * n_values[b]) << "dimensions " << b << " and " << a;
        }
    ColdTexts by_rows(false), by_prompt_kernels(true);
    for (const Cell& cell : cells) {
        expect_cold_texts(cell, cell.prompt_kernels ? by_prompt_kernels : by_rows);
        if (HasFatalFailure()) return;
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
            job.max_tokens = 68; // the last of 128 tokens, which was never evaluated, would fill a page
            const std::vector<uint32_t> answer = run_job(*engine, job).tokens;
            const Job next = greedy(joined(joined(job.prompt, answer), random_prompt(9, kVocab, 3)), draft_len);
            const uint64_t id = engine->create_sequence(next.request()).value();
            drive(*engine);
            expect_same(answer_of(*engine, id), cold.of(next), "warm");
            EXPECT_EQ(find_sequence(*engine, id)->cached_n, prompt_kernels ? 48u : 112u); // of 59, or of 127 rows
            ASSERT_TRUE(destroy_sequence(*engine, id).ok());
        }
    }
}

// What was destroyed in the middle of a round leaves nothing but what it said.
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

// In chunks that end inside pages, too: whoever is next reads on where the other ended.
TEST(Prefix, those_that_come_together_read_their_beginning_once) {
    ColdTexts cold(true);
    for (const uint32_t chunk : {512u, 64u, 24u, 7u}) {
        SCOPED_TRACE("chunks of " + std::to_string(chunk));
        auto engine = make_engine(engine_of({.chunk = chunk}));
        std::vector<uint64_t> ids;
        std::vector<Job> jobs;
        for (uint64_t i = 0; i < 8; ++i) {
            jobs.push_back(greedy(joined(kPrompt, random_prompt(5, kVocab, 70 + i)), i % 2 == 0 ? 0 : 3));
            ids.push_back(engine->create_sequence(jobs.back().request()).value());
        }
        drive(*engine);
        uint32_t n_read = 0;
        for (size_t i = 0; i < ids.size(); ++i) {
            expect_same(answer_of(*engine, ids[i]), cold.of(jobs[i]), std::to_string(i));
            const LiveSequence& sequence = *find_sequence(*engine, ids[i]);
            EXPECT_EQ(sequence.cached_n + sequence.prefilled_n, 104u) << i;
            if (chunk == 512) {
                EXPECT_EQ(sequence.cached_n, i == 0 ? 0u : 96u) << i;
            }
            n_read += sequence.prefilled_n;
        }
        const uint32_t least = 96 + 8 * 8; // six pages, and what follows them of each
        EXPECT_GE(n_read, least);
        EXPECT_LE(n_read, chunk % kPage == 0 ? least : least + 6 * (kPage - 1)) << "of a page that another one has filled the own part was read for nothing";
        EXPECT_EQ(engine->scheduler().load().prefix.queries, 8u);
        EXPECT_EQ(engine->scheduler().load().prefix.rows_found, 8 * 104 - n_read);
    }
}

// The pages of one, and behind them those of the other, which a fork still reads: it gets the former when it needs them.
TEST(Prefix, who_said_the_same_does_not_keep_pages_from_a_fork) {
    auto engine = make_engine(engine_of({.prompt_kernels = false, .slots = 3, .cache_tokens = kContext})); // answers are shared, too
    Job job = greedy(first_of(kPrompt, 33));
    job.max_tokens = 47;
    const uint64_t first = engine->create_sequence(job.request()).value();
    job.max_tokens = 79;
    const uint64_t second = engine->create_sequence(job.request()).value();
    drive(*engine);
    Job rest = greedy({});
    rest.max_tokens = 0; // to the end of the context
    const uint64_t fork = engine->fork_sequence(second, rest.request()).value();
    for (const uint64_t id : {first, second}) ASSERT_TRUE(destroy_sequence(*engine, id).ok());
    drive(*engine);
    EXPECT_EQ(find_sequence(*engine, fork)->tokens.size(), kContext);
    EXPECT_EQ(find_sequence(*engine, fork)->n_parked, 0u);
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
