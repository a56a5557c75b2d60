// A drafter is a row of a table and a file: one that is added here keeps every promise that the built-in ones keep.
#include "session/repeat_drafter.h"
#include "session/completions.h"
#include "session/speculation_simulator.h"

#include <set>

namespace auspex::repeat_drafter_test {
namespace {

using namespace test;

TEST(DrafterTable, every_row_lies_at_its_own_place) {
    Drafters table = Drafters::built_in();
    add_repeat_drafter(table);
    ASSERT_LE(table.rows.size(), kMostDrafters);
    std::set<std::string> names;
    for (size_t i = 0; i < table.rows.size(); ++i) {
        EXPECT_EQ(table.rows[i].drafter, static_cast<Drafter>(i));
        EXPECT_EQ(gpu::drafts_by_pass(static_cast<uint32_t>(i)), table.rows[i].need == DraftNeed::pass);
        EXPECT_EQ(gpu::fills_draft_cache(static_cast<uint32_t>(i)), table.rows[i].leaves == DraftRows::own_cache);
        EXPECT_EQ(table.rows[i].leaves == DraftRows::none, table.rows[i].need != DraftNeed::pass);
        EXPECT_EQ(table.rows[i].one_hot, table.rows[i].need == DraftNeed::search || table.rows[i].need == DraftNeed::host); // as rows.comp has it
        names.insert(table.rows[i].name);
    }
    EXPECT_EQ(names.size(), table.rows.size());
    std::set<DrafterChoice> choices;
    for (const DrafterChoiceRow& row : table.choices) {
        EXPECT_TRUE(choices.insert(row.choice).second);
        ASSERT_NE(table.find(row.without_pass), nullptr);
        EXPECT_TRUE(row.by_pass == Drafter::none || table.passes(row)) << row.name;
        EXPECT_TRUE(row.proposer == Drafter::none || table.searches(row) || table.asks(row)) << row.name;
    }
    EXPECT_EQ(table.find(static_cast<DrafterChoice>(99)), nullptr);
    for (uint32_t unknown : {7u, kMostDrafters - 1, ~0u}) EXPECT_STREQ(table.of(static_cast<Drafter>(unknown)).name, "none") << "as a damaged record may have it";
}

EngineDesc with_repeat(EngineDesc desc) {
    desc.adjust_drafters = add_repeat_drafter;
    return desc;
}

TEST(RepeatDrafter, greedy_and_coupled_texts_are_plain_texts) {
    EngineDesc desc;
    desc.target_synthetic = random_model({.d = 48, .layers = 2, .heads = 2, .ffn = 64, .vocab = 23, .scale = 0.1f}, 1);
    desc.max_sequences = 4;
    desc.max_context = 192;
    auto engine = make_engine(with_repeat(desc));
    ASSERT_TRUE(engine);
    uint32_t drafted = 0, accepted = 0, rounds = 0;
    for (float temperature : {0.0f, 1.2f})
        for (uint32_t draft_len : {1u, 3u, 8u, kAutoDraftLen}) {
            std::vector<Job> plain, repeating;
            for (uint64_t seed = 1; seed <= 6; ++seed) {
                Job job = {.prompt = random_prompt(3 + 7 * static_cast<uint32_t>(seed), 23, seed), .max_tokens = 60, .temperature = temperature, .seed = seed, .acceptance = AcceptanceRule::coupled};
                plain.push_back(job);
                job.draft_len = draft_len;
                job.drafter = kRepeatChoice;
                repeating.push_back(job);
            }
            const auto expected = run_jobs(*engine, plain), found = run_jobs(*engine, repeating);
            for (size_t i = 0; i < expected.size(); ++i) {
                EXPECT_EQ(found[i].tokens, expected[i].tokens) << "draft_len " << draft_len << ", temperature " << temperature;
                drafted += found[i].stats.draft_n;
                accepted += found[i].stats.draft_n_accepted;
                rounds += found[i].stats.drafter_rounds[static_cast<size_t>(kRepeat)];
            }
        }
    EXPECT_GT(drafted, 500u);
    EXPECT_GT(accepted, 0u);
    EXPECT_GT(rounds, 100u);
}

TEST(RepeatDrafter, completions_have_the_targets_distribution) {
    constexpr uint32_t kVocab = 3, kTokens = 6;
    auto engine = make_engine(with_repeat(tiny_engine(kVocab, 128, 4, false)));
    ASSERT_TRUE(engine);
    const std::vector<uint32_t> prompt = {0, 1, 2, 2, 0, 1, 1, 2, 0};
    const SequenceRequest request = {{}, kTokens, {1.0f, 0}, 3, true, kRepeatChoice, 3};
    const Completions found = count_completions(*engine, prompt, request, 12000, 5'000'000);
    ASSERT_FALSE(HasFatalFailure());
    const reference::Fit fit = fit_completions(found.counts, kVocab, kTokens, prompt, 1.0);
    EXPECT_GT(fit.p_value, 1e-6) << "chi-square " << fit.statistic << " in " << fit.bins << " bins " << fit.note;
    EXPECT_GT(found.drafted, 6000u);
    EXPECT_GT(found.accepted, found.drafted / 20);
}

// Asked each round and nearly always wrong: auto gives it up.
TEST(RepeatDrafter, is_never_slower) {
    Drafters table;
    table = Drafters::built_in();
    add_repeat_drafter(table);
    const DrafterChoiceRow& who = *table.find(kRepeatChoice);
    for (const double alpha : {0.0, 0.03, 0.9}) {
        double speed = 0;
        constexpr uint64_t kSeeds = 20;
        for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
            simulated::Device device;
            simulated::Engine engine({.target_bytes = 6'400'000'000, .draft_bytes = 0, .target_stages = 140, .draft_stages = 0, .is_cpu = false, .target_text_bytes = 0, .draft_text_bytes = 0});
            simulated::Machine machine(device, seed);
            simulated::Text text;
            text.match = [](uint32_t) { return 1u; }; // as RoundPlanner has it of whoever is asked
            text.match_alpha = [alpha](uint32_t) { return alpha; };
            speed += machine.decode(engine, text, 400, {.model = table.passes(who), .proposals = who.proposer != Drafter::none, .is_searched = table.searches(who)}).speed() / kSeeds;
        }
        std::printf("  repeated tokens that are right with probability %.2f: %.2f of plain\n", alpha, speed);
        EXPECT_GE(speed, alpha > 0.5 ? 1.5 : 0.97);
    }
}

} // namespace
} // namespace auspex::repeat_drafter_test
