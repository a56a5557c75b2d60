// Whoever drafts, the text is that of no drafts: greedy, and sampled where acceptance is coupled.
#include "reference/ngram.h"
#include "session/prompts.h"

#include <chrono>
#include <thread>

namespace auspex::drafters_test {
namespace {

using namespace test;

constexpr uint32_t kVocab = 23, kContext = 192;

EngineDesc random_pair(uint32_t slots, bool with_draft) {
    EngineDesc desc;
    desc.target_synthetic = random_model({.d = 48, .layers = 2, .heads = 2, .ffn = 64, .vocab = kVocab, .scale = 0.2f}, 1);
    if (with_draft) desc.draft_synthetic = random_model({.d = 32, .layers = 1, .heads = 1, .ffn = 40, .vocab = kVocab, .scale = 0.2f}, 2);
    desc.max_sequences = slots;
    desc.max_context = kContext;
    return desc;
}

// What a host may say, given the text that plain decoding makes of its prompt.
enum class Host { perfect, now_and_then, random, unknown_tokens, too_many, nothing };
constexpr Host kHosts[] = {Host::perfect, Host::now_and_then, Host::random, Host::unknown_tokens, Host::too_many, Host::nothing};

HostDrafter host_drafter(Host host, std::vector<uint32_t> text) {
    return [host, text = std::move(text)](std::span<const uint32_t> tokens, uint32_t max_drafts) {
        const size_t at = tokens.size();
        EXPECT_TRUE(at <= text.size() && std::equal(tokens.begin(), tokens.end(), text.begin())) << "the host is shown another text";
        std::vector<uint32_t> drafts;
        const size_t n = host == Host::too_many ? 40 : host == Host::nothing ? 0 : max_drafts;
        for (size_t i = at; i < at + n; ++i) {
            const uint32_t right = i < text.size() ? text[i] : 0;
            if (host == Host::random) drafts.push_back(random_prompt(1, kVocab, i)[0]);
            else if (host == Host::now_and_then) drafts.push_back(i % 5 == 4 ? (right + 1) % kVocab : right);
            else if (host == Host::unknown_tokens && i % 4 > 1) drafts.push_back(i % 4 == 2 ? kVocab : ~0u);
            else drafts.push_back(right);
        }
        return drafts;
    };
}

std::vector<uint32_t> joined(std::vector<uint32_t> a, const std::vector<uint32_t>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

struct Way {
    DrafterChoice drafter;
    Host host = Host::nothing;
};
std::vector<Way> all_ways() {
    std::vector<Way> ways = {{DrafterChoice::model}, {DrafterChoice::ngram}, {DrafterChoice::lookup}, {DrafterChoice::hybrid}, {DrafterChoice::automatic}};
    for (Host host : kHosts) ways.push_back({DrafterChoice::host, host});
    return ways;
}
std::string name_of(const Way& way) {
    const char* names[] = {"automatic", "none", "model", "ngram", "lookup", "hybrid", "host"};
    const char* hosts[] = {"perfect", "now and then", "random", "unknown tokens", "too many", "nothing"};
    const std::string name = names[static_cast<int>(way.drafter)];
    return way.drafter == DrafterChoice::host ? name + ", " + hosts[static_cast<int>(way.host)] : name;
}
Job drafted(Job job, const Way& way, uint32_t draft_len, const Answer& plain) {
    job.draft_len = draft_len;
    job.drafter = way.drafter;
    if (way.drafter == DrafterChoice::host) job.host_drafter = host_drafter(way.host, joined(job.prompt, plain.tokens));
    return job;
}
// Sums over many answers.
struct Sum {
    uint32_t drafted = 0, accepted = 0, rounds = 0;
    std::array<uint32_t, 5> by = {};
    void add(const Answer& answer) {
        drafted += answer.stats.draft_n;
        accepted += answer.stats.draft_n_accepted;
        rounds += answer.stats.rounds;
        for (size_t i = 0; i < by.size(); ++i) by[i] += answer.stats.drafter_rounds[i];
    }
    uint32_t of(Drafter drafter) const { return by[static_cast<size_t>(drafter)]; }
};

struct Setting {
    uint32_t slots;
    bool with_draft;
};
class Drafters : public ::testing::TestWithParam<Setting> {
  protected:
    void SetUp() override {
        engine = make_engine(random_pair(GetParam().slots, GetParam().with_draft));
        ASSERT_TRUE(engine);
    }
    void expect_rounds(const Way& way, const Sum& sum) {
        const bool model = GetParam().with_draft;
        switch (way.drafter) {
        case DrafterChoice::model: EXPECT_EQ(sum.drafted > 0, model); break;
        case DrafterChoice::ngram: EXPECT_EQ(sum.of(Drafter::ngram) + sum.of(Drafter::none), sum.rounds); break;
        case DrafterChoice::lookup: EXPECT_EQ(sum.of(Drafter::lookup) + sum.of(Drafter::none), sum.rounds); break;
        case DrafterChoice::hybrid:
        case DrafterChoice::automatic:
            EXPECT_GT(sum.of(Drafter::ngram), 0u);
            EXPECT_EQ(sum.of(Drafter::model) > 0, model);
            break;
        case DrafterChoice::host:
            if (way.host == Host::perfect || way.host == Host::too_many || way.host == Host::unknown_tokens) { EXPECT_EQ(sum.accepted, sum.drafted); }
            EXPECT_EQ(sum.of(Drafter::host) > 0, way.host != Host::nothing);
            EXPECT_EQ(sum.of(Drafter::host) + sum.of(Drafter::none), sum.rounds);
            break;
        case DrafterChoice::none:
        case DrafterChoice::self: EXPECT_EQ(sum.drafted, 0u); break; // here is no copy
        }
        const bool both_fates = way.drafter == DrafterChoice::ngram || way.drafter == DrafterChoice::lookup || way.drafter == DrafterChoice::hybrid ||
                                (way.drafter == DrafterChoice::host && (way.host == Host::random || way.host == Host::now_and_then));
        if (both_fates) {
            EXPECT_GT(sum.accepted, 0u);
            EXPECT_LT(sum.accepted, sum.drafted);
        }
    }
    std::unique_ptr<Engine> engine;
};

TEST_P(Drafters, greedy_text_is_plain_text) {
    std::vector<Job> jobs;
    for (uint32_t i = 0; i < 8; ++i) {
        std::vector<uint32_t> prompt = random_prompt(1 + i * 5, kVocab, i);
        if (i > 4) prompt = joined(prompt, joined(prompt, prompt)); // repeats itself
        jobs.push_back({.prompt = prompt, .max_tokens = 48});
    }
    const bool alone = GetParam().slots == 1;
    if (alone) jobs.erase(jobs.begin() + 1, jobs.begin() + 6);
    const auto plain = run_jobs(*engine, jobs);
    for (const Way& way : all_ways()) {
        SCOPED_TRACE(name_of(way));
        Sum sum;
        for (uint32_t draft_len = 1; draft_len <= 8; ++draft_len) {
            std::vector<Job> now;
            for (size_t i = 0; i < jobs.size(); ++i) now.push_back(drafted(jobs[i], way, draft_len, plain[i]));
            const auto answers = run_jobs(*engine, now);
            ASSERT_FALSE(HasFatalFailure());
            for (size_t i = 0; i < jobs.size(); ++i) {
                EXPECT_EQ(answers[i].tokens, plain[i].tokens) << "draft_len " << draft_len << ", prompt " << i;
                EXPECT_EQ(answers[i].stop, StopReason::length);
                sum.add(answers[i]);
                const uint32_t fewest = (jobs[i].max_tokens + draft_len) / (draft_len + 1);
                if (way.drafter == DrafterChoice::host && way.host == Host::perfect) { EXPECT_EQ(answers[i].stats.rounds, fewest); }
            }
        }
        expect_rounds(way, sum);
        RecordProperty(name_of(way), std::to_string(sum.accepted) + " of " + std::to_string(sum.drafted));
    }
}

// The noise of a position belongs to it, not to whoever drafted it.
TEST_P(Drafters, coupled_text_is_plain_text) {
    const bool alone = GetParam().slots == 1;
    for (uint32_t seed = 0; seed < 100; ++seed) {
        Job job = {.prompt = random_prompt(1 + seed * 7 % 60, 5, seed), .max_tokens = 14, .temperature = 0.2f + 0.1f * static_cast<float>(seed % 12), .seed = seed};
        job.acceptance = AcceptanceRule::coupled;
        const Answer plain = run_job(*engine, job);
        std::vector<Job> jobs;
        for (const Way& way : {Way{DrafterChoice::model}, Way{DrafterChoice::ngram}, Way{DrafterChoice::lookup}, Way{DrafterChoice::hybrid},
                               Way{DrafterChoice::host, kHosts[seed % std::size(kHosts)]}})
            for (uint32_t draft_len = 0; draft_len <= 8; ++draft_len)
                if (!alone || draft_len == (seed + static_cast<uint32_t>(way.drafter)) % 9) jobs.push_back(drafted(job, way, draft_len, plain));
        const auto answers = run_jobs(*engine, jobs);
        ASSERT_FALSE(HasFatalFailure());
        for (size_t i = 0; i < jobs.size(); ++i)
            EXPECT_EQ(answers[i].tokens, plain.tokens) << "seed " << seed << ", draft_len " << jobs[i].draft_len << ", drafter " << static_cast<int>(jobs[i].drafter);
        if (HasFailure()) return;
    }
}

INSTANTIATE_TEST_SUITE_P(, Drafters, ::testing::Values(Setting{1, true}, Setting{8, true}, Setting{1, false}, Setting{8, false}), [](const auto& at) {
    return std::to_string(at.param.slots) + "_slots_" + (at.param.with_draft ? "pair" : "target_only");
});

// One round serves what needs the largest logit, the largest after noise, and all of them.
TEST(SharedRounds, text_does_not_depend_on_how_others_sample) {
    auto engine = make_engine(random_pair(8, true));
    ASSERT_TRUE(engine);
    std::vector<Job> jobs;
    for (uint32_t i = 0; i < 6; ++i) {
        jobs.push_back({.prompt = random_prompt(3 + i, kVocab, i), .max_tokens = 20, .draft_len = i, .temperature = i % 3 == 0 ? 0.0f : 0.9f, .seed = i});
        if (i % 3 == 1) jobs.back().acceptance = AcceptanceRule::coupled;
    }
    for (size_t n : {size_t{2}, size_t{6}}) { // the first two do not need the logits
        const auto together = run_jobs(*engine, {jobs.begin(), jobs.begin() + static_cast<std::ptrdiff_t>(n)});
        ASSERT_FALSE(HasFatalFailure());
        for (size_t i = 0; i < n; ++i) {
            EXPECT_EQ(together[i].tokens, run_job(*engine, jobs[i]).tokens) << "job " << i << " of " << n;
            Job greedy = jobs[i];
            greedy.temperature = 0;
            EXPECT_EQ(together[i].tokens == run_job(*engine, greedy).tokens, jobs[i].temperature == 0) << "job " << i << " of " << n;
        }
    }
}

class BundledDrafters : public ::testing::TestWithParam<bool> {}; // with the draft model

// On real text, with an engine that may have no draft at all; one prompt repeats itself.
TEST_P(BundledDrafters, greedy_text_is_plain_text) {
    EngineDesc desc = bundled_pair(8, 480);
    if (!GetParam()) desc.draft_path.clear();
    auto engine = make_engine(desc);
    ASSERT_TRUE(engine);
    const auto prompts = bundled_prompts(*engine);
    std::vector<Job> jobs;
    for (size_t i : {size_t{0}, size_t{7}, size_t{8}, size_t{17}}) jobs.push_back({.prompt = prompts[i], .max_tokens = 70}); // 8 repeats itself
    const auto plain = run_jobs(*engine, jobs);
    uint32_t draft_len = 1;
    for (const Way& way : all_ways()) {
        SCOPED_TRACE(name_of(way));
        if (way.drafter == DrafterChoice::model || (way.drafter == DrafterChoice::host && way.host != Host::now_and_then)) continue;
        for (uint32_t round = 0; round < 2; ++round) {
            draft_len = draft_len % 8 + 3;
            std::vector<Job> now;
            for (size_t i = 0; i < jobs.size(); ++i) now.push_back(drafted(jobs[i], way, std::min(draft_len, 8u), plain[i]));
            const auto answers = run_jobs(*engine, now);
            ASSERT_FALSE(HasFatalFailure());
            for (size_t i = 0; i < jobs.size(); ++i) EXPECT_EQ(answers[i].tokens, plain[i].tokens) << "draft_len " << draft_len << ", prompt " << i;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(, BundledDrafters, ::testing::Bool(), [](const auto& at) { return at.param ? "pair" : "target_only"; });

// The host reads every round in time, or always late, or alternately.
TEST(DraftersAlone, a_seed_gives_its_text_again_however_late_the_host_reads) {
    auto engine = make_engine(random_pair(1, true));
    ASSERT_TRUE(engine);
    const auto answer_at = [&](const Job& job, uint32_t late_one_in) {
        auto id = engine->create_sequence(job.request());
        EXPECT_TRUE(id.ok());
        uint32_t n_steps = 0;
        drive(*engine, [&] {
            if (late_one_in > 0 && ++n_steps % late_one_in == 0) std::this_thread::sleep_for(std::chrono::milliseconds(15)); // all in flight is done
            return false;
        });
        const Answer answer = answer_of(*engine, id.value());
        EXPECT_TRUE(destroy_sequence(*engine, id.value()).ok());
        return answer;
    };
    for (DrafterChoice drafter : {DrafterChoice::ngram, DrafterChoice::automatic}) {
        uint32_t n_proposed = 0;
        for (uint64_t seed = 1; seed <= 2; ++seed) {
            Job job = {.prompt = random_prompt(9, kVocab, seed), .max_tokens = 50, .draft_len = 3, .temperature = 1, .seed = seed, .drafter = drafter};
            job.transforms.biases = {{5, 20.0f}, {6, 20.0f}}; // two tokens, in no order: proposals now and then
            const Answer in_time = answer_at(job, 0);
            for (uint32_t late_one_in : {1, 2}) EXPECT_EQ(answer_at(job, late_one_in).tokens, in_time.tokens) << name_of({drafter}) << ", late every " << late_one_in;
            n_proposed += in_time.stats.drafter_rounds[static_cast<size_t>(Drafter::ngram)];
        }
        EXPECT_GT(n_proposed, 10u) << name_of({drafter});
    }
}

// What is found after every round is what the text holds then, whatever was done to it before: forked, cut off with rounds under
// way and gone on with otherwise.
TEST(DraftersAlone, searches_know_of_all_that_becomes_of_a_text) {
    auto engine = make_engine(random_pair(4, false));
    ASSERT_TRUE(engine);
    uint32_t n_found = 0, n_nothing = 0;
    auto check = [&](uint64_t id) {
        const LiveSequence& sequence = *find_sequence(*engine, id);
        if (sequence.stop != StopReason::none || sequence.n_generated() == 0) return;
        const SequenceRequest& request = sequence.request;
        const auto expected = request.drafter == DrafterChoice::lookup ? reference::propose_lookup(sequence.tokens, request.ngram_max, request.draft_len)
                                                                       : reference::propose_ngram(sequence.tokens, request.ngram_max, request.draft_len);
        ASSERT_EQ(sequence.match_len, expected.match_len) << "after " << show(sequence.tokens);
        ++(expected.match_len > 0 ? n_found : n_nothing);
    };
    for (uint32_t trial = 0; trial < 12; ++trial) {
        auto request = [&](uint32_t part) {
            Job job = {.prompt = random_prompt(1 + (trial + part) * 15 % 67, kVocab, trial + 50 * part), .max_tokens = 30, .draft_len = 3,
                       .temperature = 1, .seed = trial, .drafter = (trial + part) % 3 ? DrafterChoice::ngram : DrafterChoice::lookup, .ngram_max = 2 + trial % 5};
            job.transforms.biases = {{5, 5.0f}, {6, 5.0f}, {7, 5.0f}, {8, 5.0f}}; // few tokens, in no order
            for (uint32_t& token : job.prompt) token = 5 + token % 4; // the first matches are within the prompt
            return job.request();
        };
        std::vector<uint64_t> ids = {engine->create_sequence(request(0)).value(), engine->create_sequence(request(1)).value()};
        auto go_on = [&](uint32_t n_steps) {
            drive(*engine, [&] {
                for (uint64_t id : ids) check(id);
                return n_steps-- == 0 || ::testing::Test::HasFatalFailure();
            });
        };
        go_on(4 + trial);
        SequenceRequest of_fork = request(2);
        of_fork.prompt.clear();
        auto fork = engine->fork_sequence(ids[0], of_fork);
        ASSERT_TRUE(fork.ok()) << fork.status().message();
        ids.push_back(fork.value());
        go_on(4);
        ASSERT_TRUE(cancel_sequence(*engine, ids[1]).ok());
        ASSERT_TRUE(engine->append_sequence(ids[1], request(3)).ok());
        go_on(1000);
        SequenceRequest nothing_new = request(4);
        nothing_new.prompt.clear();
        ASSERT_TRUE(engine->append_sequence(ids[0], nothing_new).ok());
        go_on(1000);
        for (uint64_t id : ids) ASSERT_TRUE(destroy_sequence(*engine, id).ok());
        if (HasFailure()) return;
    }
    EXPECT_GT(n_found, 100u);
    EXPECT_GT(n_nothing, 100u);
}

// Text that repeats itself, as the bundled model's does on this prompt, is foreseen by looking at it.
TEST(BundledDraftersAlone, most_drafts_are_accepted_where_text_repeats) {
    EngineDesc desc = bundled_pair(1, 480);
    desc.draft_path.clear();
    auto engine = make_engine(desc);
    ASSERT_TRUE(engine);
    const auto prompt = bundled_prompts(*engine)[8];
    for (DrafterChoice drafter : {DrafterChoice::ngram, DrafterChoice::lookup}) {
        const Answer answer = run_job(*engine, {.prompt = prompt, .max_tokens = 150, .draft_len = 6, .drafter = drafter});
        EXPECT_GT(answer.stats.draft_n, 60u);
        EXPECT_GT(answer.stats.draft_n_accepted, answer.stats.draft_n * 7 / 10);
        EXPECT_LT(answer.stats.rounds, 75u);
        RecordProperty(drafter == DrafterChoice::ngram ? "ngram" : "lookup",
                       std::to_string(answer.stats.draft_n_accepted) + " of " + std::to_string(answer.stats.draft_n) + " in " + std::to_string(answer.stats.rounds) + " rounds");
    }
}

// Where a full batch makes twice the rows take twice as long, plain rounds are those of an engine without drafters: nothing is found,
// until somebody comes whose draft_len is fixed.
TEST(Searches, nobody_searches_where_no_draft_could_pay) {
    EngineDesc desc;
    desc.target_synthetic = random_model({.d = 512, .layers = 2, .heads = 8, .kv_heads = 8, .head_dim = 64, .ffn = 2048, .vocab = kVocab, .scale = 0.2f}, 1);
    desc.max_sequences = 17;
    desc.max_draft_len = 1;
    desc.max_context = 256;
    auto engine = make_engine(desc);
    Job job = {.prompt = std::vector<uint32_t>(40, 5), .draft_len = kAutoDraftLen, .drafter = DrafterChoice::automatic};
    job.transforms.biases = {{5, 1000.0f}}; // each text says one token for ever: a search always finds something
    std::vector<uint64_t> ids;
    for (uint32_t i = 0; i < 16; ++i) ids.push_back(engine->create_sequence(job.request()).value());
    const auto n_found = [&](uint32_t n_rounds) { // in so many rounds of them all
        uint32_t found = 0;
        for (uint32_t n = 0; n < n_rounds; ++n) {
            const uint64_t rounds = find_sequence(*engine, ids.back())->stats.rounds; // its prompt is read last
            drive(*engine, [&] { return find_sequence(*engine, ids.back())->stats.rounds > rounds; });
            for (const uint64_t id : ids) found += find_sequence(*engine, id)->match_len > 0;
        }
        return found;
    };
    ASSERT_TRUE(engine->prepare(job.request()).ok());
    n_found(20); // until costs are known
    const CostModel& costs = engine->planner().costs();
    ASSERT_TRUE(costs.is_calibrated());
    const double rows_twice = costs.round_ms({.proposals = true, .draft_len = 1, .batch = 16, .transforms = true}) / costs.round_ms({.batch = 16, .transforms = true});
    const uint32_t found = n_found(16);
    std::printf("  a round of 32 rows takes %.2f times as long as one of 16; of 256 searches %u found something\n", rows_twice, found);
    if (rows_twice > 1.97) { // a draft that is nearly always right gives 1.95 tokens
        EXPECT_LT(found, 64u) << "costs are near those where it begins to pay, so it may begin now and then";
    } else if (rows_twice < 1.85) {
        EXPECT_GT(found, 64u);
    }
    job.draft_len = 1;
    ids.push_back(engine->create_sequence(job.request()).value());
    n_found(2);
    EXPECT_GT(n_found(4), 0u) << "it is promised its drafts";
}

} // namespace
} // namespace auspex::drafters_test
