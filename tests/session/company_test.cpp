// What sequences of one engine do to one another: whose drafts and slots go when pages run out, how long a prompt keeps a text waiting, and
// how many recordings all their forms may have.
#include "session/waiting_crowd.h"


namespace auspex::company_test {
namespace {

using namespace test;
using namespace test::crowd;

// ---- pages

struct Seats {
    std::unique_ptr<Engine> engine = make_engine(engine_with(4, 4));
    std::vector<Job> jobs;
    std::vector<uint64_t> ids;
    void add(uint32_t prompt, int32_t priority, float temperature = 0) {
        jobs.push_back(job_of(prompt, 60, jobs.size() + 1, temperature));
        SequenceRequest request = jobs.back().request();
        request.priority = priority;
        ids.push_back(engine->create_sequence(request).value());
    }
    void begin() { // all of them draft
        drive(*engine, [&] { return std::all_of(ids.begin(), ids.end(), [&](uint64_t id) { return find_sequence(*engine, id)->stats.rounds > 1; }); });
    }
    uint32_t n_pages(ModelRole of, size_t i) { return find_sequence(*engine, ids[i])->slot->pages_of(of).size(); }
    void make_room(ModelRole of, uint32_t n_more) {
        KvCache& cache = of == ModelRole::draft ? engine->draft()->cache() : engine->target().cache();
        engine->admission().make_room(of, cache.pool().n_available() + n_more);
    }
    void expect_texts_of_each_alone() {
        drive(*engine);
        const std::vector<Answer> expected = each_alone(engine_with(1, 0), jobs);
        for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(answer_of(*engine, ids[i]).tokens, expected[i].tokens) << i;
    }
};

TEST(Company, the_longest_draft_cache_goes_before_anybodys_slot) {
    Seats seats;
    for (const uint32_t prompt : {20u, 70u, 45u}) seats.add(prompt, 0);
    seats.add(90, 9, 0.8f); // the least urgent and the longest, but its seed's text depends on its drafts
    seats.begin();
    const auto are_off = [&] {
        std::vector<size_t> found;
        for (size_t i = 0; i < seats.ids.size(); ++i)
            if (find_sequence(*seats.engine, seats.ids[i])->drafts_are_off) found.push_back(i);
        return found;
    };
    EXPECT_EQ(are_off(), std::vector<size_t>{});
    seats.make_room(ModelRole::draft, 1);
    EXPECT_EQ(are_off(), std::vector<size_t>{1});
    EXPECT_EQ(seats.n_pages(ModelRole::draft, 1), 0u);
    EXPECT_GT(seats.n_pages(ModelRole::target, 1), 4u) << "its text goes on";
    seats.make_room(ModelRole::draft, 1);
    EXPECT_EQ(are_off(), (std::vector<size_t>{1, 2}));
    seats.make_room(ModelRole::draft, 1);
    EXPECT_EQ(are_off(), (std::vector<size_t>{0, 1, 2}));
    EXPECT_EQ(seats.engine->admission().n_parked(), 0u);
    seats.make_room(ModelRole::draft, 1); // nothing is left but slots
    EXPECT_EQ(find_sequence(*seats.engine, seats.ids[3])->slot, nullptr);
    EXPECT_EQ(seats.engine->admission().n_parked(), 1u);
    const uint64_t drafted = find_sequence(*seats.engine, seats.ids[1])->stats.draft_n;
    seats.expect_texts_of_each_alone();
    EXPECT_LE(find_sequence(*seats.engine, seats.ids[1])->stats.draft_n, drafted + 8) << "rounds under way may draft";
}

TEST(Company, the_youngest_of_the_least_urgent_is_parked) {
    Seats seats;
    for (const int32_t priority : {1, 0, 1, 0}) seats.add(30, priority);
    seats.begin();
    for (const size_t goes : {2, 0, 3, 1}) {
        ASSERT_NE(find_sequence(*seats.engine, seats.ids[goes])->slot, nullptr) << goes;
        seats.make_room(ModelRole::target, 1);
        ASSERT_EQ(find_sequence(*seats.engine, seats.ids[goes])->slot, nullptr) << goes;
    }
    EXPECT_EQ(seats.engine->admission().n_parked(), 4u);
    seats.expect_texts_of_each_alone();
}

// A newcomer whose drafts have no room comes in without them. A fork shares its source's pages of the target; of the draft's it is told
// when it is copied.
TEST(Company, who_finds_no_pages_for_drafts_comes_in_without) {
    Seats seats;
    seats.engine = make_engine(engine_with(4, 4, kContext * 3 / 2)); // 15 pages
    seats.jobs.push_back(job_of(120, 8, 1));
    SequenceRequest request = seats.jobs.back().request();
    seats.ids.push_back(seats.engine->create_sequence(request).value());
    drive(*seats.engine, [&] { return find_sequence(*seats.engine, seats.ids[0])->stats.rounds > 0; });
    Job fork = seats.jobs.back();
    fork.prompt.clear();
    const uint64_t id = seats.engine->fork_sequence(seats.ids[0], fork.request()).value();
    ASSERT_NE(find_sequence(*seats.engine, id)->slot, nullptr);
    EXPECT_TRUE(find_sequence(*seats.engine, id)->drafts_are_off);
    EXPECT_EQ(seats.engine->admission().n_parked(), 0u);
    drive(*seats.engine);
    EXPECT_EQ(find_sequence(*seats.engine, id)->stats.draft_n, 0u);
}

// ---- turns

// Prompts are read in chunks as long as texts may be kept waiting, and a round comes after each.
TEST(Company, a_text_waits_for_one_chunk_of_prompts_at_a_time) {
    constexpr uint32_t kPrompt = 140, kPrompts = 3;
    for (const double max_gap_ms : {1e-3, 1e6}) {
        SCOPED_TRACE(std::to_string(max_gap_ms) + " ms");
        EngineDesc desc = engine_with(4, 4);
        desc.max_gap_ms = max_gap_ms;
        desc.max_submission_ms = kNoBudget;
        desc.max_replay_rows = 512;
        auto engine = make_engine(desc);
        const uint64_t text = engine->create_sequence(job_of(4, 150, 1).request()).value();
        drive(*engine, [&] { return find_sequence(*engine, text)->stats.rounds > 3; });
        uint32_t n_chunks = 0, n_chunks_together = 0;
        bool chunk_was_last = false;
        set_trace(*engine, [&](const TraceEvent& event) {
            if (event.is_stage || find_sequence(*engine, text)->stop != StopReason::none) return;
            const bool is_round = event.drafter[0] != '\0', is_prompt = event.name == std::string("prefill");
            n_chunks += is_prompt;
            n_chunks_together += is_prompt && chunk_was_last;
            chunk_was_last = is_prompt || (chunk_was_last && !is_round);
        });
        std::vector<uint64_t> prompts;
        for (uint32_t i = 0; i < kPrompts; ++i) prompts.push_back(engine->create_sequence(job_of(kPrompt, 1, 10 + i).request()).value());
        drive(*engine, [&] { return std::all_of(prompts.begin(), prompts.end(), [&](uint64_t id) { return find_sequence(*engine, id)->stop != StopReason::none; }); });
        ASSERT_EQ(find_sequence(*engine, text)->stop, StopReason::none) << "too short a text to see anything";
        EXPECT_EQ(n_chunks_together, 0u);
        if (max_gap_ms < 1) {
            EXPECT_GE(n_chunks, kPrompts * kPrompt / 8) << "eight rows are the fewest";
        } else {
            EXPECT_LE(n_chunks, kPrompts);
        }
        set_trace(*engine, {});
    }
}

TEST(Company, recordings_are_bounded_and_the_last_used_stay) {
    auto engine = make_engine(engine_with(1, 0));
    const auto run = [&](uint32_t form) { // 96 forms of rounds
        Job job = job_of(4, 6, 1, 0.8f);
        job.draft_len = form % 4;
        job.with_logprobs = form / 4 % 2 == 1;
        if (form / 8 % 2 == 1) job.transforms.repeat_penalty = 1.1f;
        if (form / 16 % 2 == 1) job.transforms.top_k = 7;
        if (form / 32 == 1) job.transforms.top_p = 0.9f;
        if (form / 32 == 2) job.transforms.min_p = 0.05f;
        run_job(*engine, job);
    };
    for (uint32_t form = 0; form < 96; ++form) {
        run(form);
        EXPECT_LE(engine->turns().n_recorded(), 64u) << form;
    }
    EXPECT_EQ(engine->turns().n_recorded(), 64u);
    const uint64_t before = engine->turns().n_recordings_made();
    for (uint32_t form = 64; form < 96; ++form) run(form);
    EXPECT_EQ(engine->turns().n_recordings_made(), before) << "the last 32 forms are recorded still";
    run(0);
    EXPECT_GT(engine->turns().n_recordings_made(), before);
}

} // namespace
} // namespace auspex::company_test
