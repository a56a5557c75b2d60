// draft_len auto on simulated machines and texts: never noticeably slower than plain decoding, close to the best fixed
// draft_len.
#include "session/speculation_beds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace auspex::speculation_test {
namespace {

using namespace simulated;
using simulated::Device;
using simulated::Engine;

constexpr uint64_t kSeeds = 8;

// Speed against plain decoding, averaged over seeds; warm_ups: texts decoded by the engine before.
double speed(const Bed& bed, const Text& text, uint32_t n_tokens, const Setting& setting, int warm_ups, double* least = nullptr) {
    double sum = 0;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
        Engine engine(bed.prior);
        Machine machine(bed.device, seed);
        for (int i = 0; i < warm_ups; ++i) machine.decode(engine, text, n_tokens, setting);
        const double one = machine.decode(engine, text, n_tokens, setting).speed();
        if (least) *least = std::min(*least, one);
        sum += one;
    }
    return sum / kSeeds;
}

TEST(Speculation, UselessDraftCostsLittleFromAColdStart) {
    for (const Bed& bed : beds()) {
        double least = 9;
        const double cold = speed(bed, text_of(0), 128, {}, 0, &least);
        std::printf("  %-32s alpha 0, 128 tokens, cold: %.3f of plain (least %.3f)\n", bed.device.name.c_str(), cold, least);
        EXPECT_GE(cold, 0.97) << bed.device.name;
        EXPECT_GE(speed(bed, text_of(0, 400), 128, {}, 0), 0.97) << bed.device.name << ", long prompt";
        EXPECT_GE(speed(bed, text_of(0), 1500, {}, 0), 0.97) << bed.device.name << ", 1500 tokens";
    }
}

// A shader that compiles in the first round of a shape is paid for once: two shapes at most are tried.
TEST(Speculation, ColdShadersAreMetAtMostTwice) {
    Bed bed = beds()[1];
    bed.device.cold_ms = 360;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
        Engine engine(bed.prior);
        const Decoded run = Machine(bed.device, seed).decode(engine, text_of(0), 128, {});
        EXPECT_LE(engine.warm.size(), 3u) << "plain and two more";
        EXPECT_GE((run.plain_ms + 360 * 3) / run.ms, 0.97);
        EXPECT_LT(engine.costs.round_ms({.model = true, .draft_len = 1}), 1.5 * bed.device.round_ms({.model = true, .draft_len = 1}));
    }
}

// Rounds become ready late and in any order: none is chosen before, drafts begin with the first that win, and what they win is not
// lost by waiting. Where none ever is, the summary says so.
TEST(Speculation, OnlyRoundsThatAreReadyAreChosen) {
    const Bed bed = beds()[1];
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
        std::mt19937_64 random(seed);
        std::map<std::pair<bool, uint32_t>, uint32_t> ready_at;
        for (const bool model : {false, true})
            for (uint32_t draft_len = 1; draft_len <= 8; ++draft_len) ready_at[{model, draft_len}] = static_cast<uint32_t>(random() % 200);
        Engine engine(bed.prior);
        const auto is_ready = [&](uint32_t at, bool model, uint32_t draft_len) { return ready_at.at({model, draft_len}) <= at; };
        Setting setting = {.is_ready = is_ready};
        const Decoded run = Machine(bed.device, seed).decode(engine, text_of(0.9), 400, setting);
        for (size_t i = 0; i < run.plans.size(); ++i) {
            const RoundShape& shape = run.plans[i].shape;
            if (shape.draft_len > 0) { EXPECT_TRUE(is_ready(run.planned_at[i], shape.model, shape.draft_len)); }
        }
        EXPECT_TRUE(drafted(run));
        EXPECT_GE(run.speed(), 1.1);
        Engine none(bed.prior);
        setting.is_ready = [](uint32_t, bool, uint32_t) { return false; };
        const Decoded plain = Machine(bed.device, seed).decode(none, text_of(0.9), 100, setting);
        EXPECT_FALSE(drafted(plain));
        EXPECT_NE(plain.summary.reason.find("not compiled yet"), std::string::npos) << plain.summary.reason;
        setting.is_ready = [&](uint32_t, bool, uint32_t draft_len) { return draft_len != 2; }; // one failed
        Engine gap(bed.prior);
        for (const RoundPlan& plan : Machine(bed.device, seed).decode(gap, text_of(0.9), 400, setting).plans) EXPECT_NE(plan.shape.draft_len, 2u);
        setting.fixed = 2; // waits for nothing
        for (const RoundPlan& plan : Machine(bed.device, seed).decode(gap, text_of(0.9), 40, setting).plans) EXPECT_EQ(plan.shape.draft_len, 2u);
    }
}

// What recording takes is charged to the account: drafts that win begin in the first text, and useless ones lose no more than without it.
TEST(Speculation, RecordingIsPaidFromTheAccount) {
    for (const double recording_ms : {6.0, 60.0, 180.0}) { // a token takes 60
        Bed bed = beds()[1];
        bed.device.recording_ms = recording_ms;
        double useless = 0, useful = 0;
        for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
            Engine first(bed.prior), second(bed.prior);
            useless += Machine(bed.device, seed).decode(first, text_of(0), 128, {}).speed() / kSeeds;
            const Decoded run = Machine(bed.device, seed).decode(second, text_of(0.9), 150, {});
            EXPECT_TRUE(drafted(run)) << recording_ms;
            useful += run.speed() / kSeeds;
        }
        std::printf("  recording %.0f ms: %.3f of plain where drafts are useless, %.2f where they win\n", recording_ms, useless, useful);
        EXPECT_GE(useless, recording_ms <= 60 ? 0.96 : 0.93);
        EXPECT_GE(useful, recording_ms <= 60 ? 1.2 : 1.05);
    }
}

TEST(Speculation, SteadyStateIsCloseToTheBestFixedDraftLen) {
    double sum = 0, least = 9;
    int n = 0;
    for (const Bed& bed : beds()) {
        for (const double alpha : {0.0, 0.3, 0.6, 0.8, 0.95, 1.0}) {
            double best = 1; // by the device's true costs
            for (uint32_t draft_len = 1; draft_len <= 8; ++draft_len)
                best = std::max(best, expected_tokens(alpha, draft_len) * bed.device.round_ms({}) /
                                          bed.device.round_ms({.model = true, .draft_len = draft_len}));
            const double ratio = speed(bed, text_of(alpha), 300, {}, 2) / best;
            if (ratio < 0.95) std::printf("  %-32s alpha %.2f: %.3f of the best fixed (%.2f)\n", bed.device.name.c_str(), alpha, ratio, best);
            sum += ratio;
            least = std::min(least, ratio);
            n += 1;
        }
    }
    std::printf("  steady state: %.3f of the best fixed draft_len on average, least %.3f\n", sum / n, least);
    EXPECT_GE(sum / n, 0.95);
    EXPECT_GE(least, 0.85);
}

// What a busy machine taught must not keep drafts off for ever: stored ratios are doubted more from one process to the next,
// and those of this process the longer they were not met.
TEST(Speculation, WrongCostsAreFoundOut) {
    for (const Bed& bed : {beds()[1], beds()[4], beds()[6]}) {
        for (const double wrong : {0.5, 1.6, 2.0}) {
            SCOPED_TRACE(bed.device.name + ", costs times " + std::to_string(wrong));
            Engine before(bed.prior);
            Machine machine(bed.device, 5);
            machine.decode(before, text_of(0.9), 600, {});
            const double truthful = machine.decode(before, text_of(0.9), 600, {}).speed();
            std::vector<CostModel::Learnt> learnt = before.costs.learnt();
            for (CostModel::Learnt& one : learnt)
                if (one.part == CostModel::Part::verify || one.part == CostModel::Part::draft) one.factor *= wrong;
            const std::vector<CostModel::Learnt> stored = learnt;
            LongRun long_run = before.long_run;
            int processes = 0; // of 150 tokens
            for (double last = 0; last < 0.9 * truthful && processes < 10; ++processes) {
                Engine engine(bed.prior);
                restart(engine, learnt, long_run);
                last = machine.decode(engine, text_of(0.9), 150, {}).speed();
                EXPECT_GE(last, 0.97);
                learnt = engine.costs.learnt();
                long_run = engine.long_run;
            }
            Engine engine(bed.prior);
            restart(engine, stored, before.long_run);
            int texts = 0; // of 150 tokens, in one process
            for (double last = 0; last < 0.9 * truthful && texts < 20; ++texts) {
                last = machine.decode(engine, text_of(0.9), 150, {}).speed();
                EXPECT_GE(last, 0.97);
            }
            std::printf("  %-32s costs × %.1f: %.2f of plain again in process %d, or text %d of one\n", bed.device.name.c_str(), wrong, truthful, processes, texts);
            EXPECT_LT(processes, 10);
            EXPECT_LT(texts, 20);
        }
    }
}

// The doubt is no reason to try again and again.
TEST(Speculation, DraftsThatCostTooMuchAreSeldomTried) {
    Bed bed = beds()[1];
    bed.device.c = 0.5, bed.device.row = 0.6;
    double short_sum = 0, long_sum = 0, least = 9;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
        Machine machine(bed.device, seed);
        Engine first(bed.prior);
        machine.decode(first, text_of(0.9), 600, {});
        std::vector<CostModel::Learnt> learnt = first.costs.learnt();
        LongRun long_run = first.long_run;
        for (int process = 0; process < 16; ++process) {
            Engine engine(bed.prior);
            restart(engine, learnt, long_run);
            const double one = machine.decode(engine, text_of(0.9), 150, {}).speed();
            least = std::min(least, one);
            short_sum += one / 16;
            learnt = engine.costs.learnt();
            long_run = engine.long_run;
        }
        Engine engine(bed.prior);
        long_sum += machine.decode(engine, text_of(0.9), 6000, {}).speed();
    }
    std::printf("  drafts that cost too much: %.3f of plain in processes of 150 tokens (least %.3f), %.3f in 6000 tokens\n", short_sum / kSeeds, least, long_sum / kSeeds);
    EXPECT_GE(short_sum / kSeeds, 0.985);
    EXPECT_GE(long_sum / kSeeds, 0.985);
    EXPECT_GE(least, 0.95);
}

// Texts of 64 tokens, too short to win anything back: what the pair did with the last ones decides.
TEST(Speculation, ShortTextsOfAKnownPairLoseLittle) {
    Bed bed = {{}, prior_of(1.6, 0.2, true)};
    bed.device.target_ms = 1.6, bed.device.c = 0.2, bed.device.row = 0.33, bed.device.accept_ms = 0.02, bed.device.overhead_ms = 0.07;
    struct Case {
        const char* name;
        double before, now; // α
        double least;       // of plain, on average
    };
    for (const Case& one : {Case{"useless", 0, 0, 0.98}, {"useless now", 0.9, 0, 0.97}, {"worse now", 0.9, 0.45, 0.97}, {"useful", 0.9, 0.9, 1.15}, {"better now", 0.1, 0.9, 1.0}}) {
        std::vector<double> speeds;
        for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
            Machine machine(bed.device, seed);
            Engine engine(bed.prior);
            for (int i = 0; i < 8; ++i) machine.decode(engine, text_of(one.before), 64, {.fixed = 4});
            for (int i = 0; i < 8; ++i) machine.decode(engine, text_of(one.before), 64, {});
            for (int i = 0; i < 16; ++i) speeds.push_back(machine.decode(engine, text_of(one.now), 64, {}).speed());
        }
        std::sort(speeds.begin(), speeds.end());
        const double mean = std::accumulate(speeds.begin(), speeds.end(), 0.0) / static_cast<double>(speeds.size());
        std::printf("  64 tokens of a known pair, %-12s %.3f of plain on average, %.3f in the median, least %.3f\n", one.name, mean, speeds[speeds.size() / 2], speeds[0]);
        EXPECT_GE(mean, one.least) << one.name;
        EXPECT_GE(speeds[speeds.size() / 2], std::min(one.least, 0.985)) << one.name;
    }
}

// Short stories of a pair that nobody knows, on a machine where drafts win a little: two rounds in flight and a second catch-up must
// not take all that a text may lose before the first draft was seen to be good.
TEST(Speculation, AnUnknownPairGetsPastItsFirstDrafts) {
    Bed bed = {{}, prior_of(1.6, 0.12, true)};
    bed.device.target_ms = 2, bed.device.c = 0.25, bed.device.row = 0.35, bed.device.accept_ms = 0.02, bed.device.overhead_ms = 0.07, bed.device.recording_ms = 0.4;
    double third = 0;
    uint32_t n_drafting = 0;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
        Machine machine(bed.device, seed);
        Engine engine(bed.prior);
        for (int i = 0; i < 2; ++i) machine.decode(engine, text_of(0.91, 5), 132, {});
        const Decoded run = machine.decode(engine, text_of(0.91, 5), 132, {});
        third += run.speed() / kSeeds;
        n_drafting += std::count_if(run.choices.begin(), run.choices.end(), [](const DraftChoice& choice) { return choice.draft_len > 0; }) > 20;
    }
    std::printf("  the third story of an unknown pair: %.2f of plain, %u of %u with drafts\n", third, n_drafting, static_cast<uint32_t>(kSeeds));
    EXPECT_GE(third, 1.15);
    EXPECT_EQ(n_drafting, kSeeds);
}

double best_speed(const Device& device, double alpha) {
    double best = 1; // by the device's true costs
    for (uint32_t draft_len = 1; draft_len <= 8; ++draft_len)
        best = std::max(best, expected_tokens(alpha, draft_len) * device.round_ms({}) / device.round_ms({.model = true, .draft_len = draft_len}));
    return best;
}

// Of the first texts of a pair, one after the other.
std::vector<double> first_texts(const Bed& bed, double alpha, uint32_t prompt, uint32_t n_tokens, bool costs_are_known) {
    constexpr uint64_t kMany = 24;
    std::vector<double> times(8);
    for (uint64_t seed = 1; seed <= kMany; ++seed) {
        Engine engine(bed.prior);
        Machine machine(bed.device, seed);
        for (const uint32_t fixed : {0u, 2u, 3u, 4u})
            if (costs_are_known) machine.decode(engine, text_of(alpha, prompt), n_tokens, {.fixed = fixed});
        engine.long_run = {};
        for (double& time : times) time += 1 / machine.decode(engine, text_of(alpha, prompt), n_tokens, {}).speed() / kMany;
    }
    for (double& time : times) time = 1 / time;
    return times;
}

// Reading the prompt again takes as long as one token or five, and the first texts tell whether that is worth it.
TEST(Speculation, AFastDeviceTriesAnUnknownPairInItsFirstText) {
    const Bed bed = h100();
    for (const bool costs_are_known : {false, true})
        for (const auto& [prompt, n_tokens] : {std::pair{16u, 64u}, {16u, 256u}, {512u, 64u}, {512u, 256u}})
            for (const double alpha : {0.3, 0.5, 0.7, 0.8, 0.9}) {
                const std::vector<double> speeds = first_texts(bed, alpha, prompt, n_tokens, costs_are_known);
                const double mean = std::accumulate(speeds.begin(), speeds.end(), 0.0) / 8, best = best_speed(bed.device, alpha);
                std::printf("  %s, prompt of %3u, %3u tokens, alpha %.1f: best K %.2f, first texts", costs_are_known ? "costs known" : "new", prompt, n_tokens, alpha, best);
                for (const double speed : speeds) std::printf(" %.3f", speed);
                std::printf("\n");
                SCOPED_TRACE(std::to_string(alpha) + ", prompt " + std::to_string(prompt) + ", tokens " + std::to_string(n_tokens));
                EXPECT_GE(speeds[0], 0.94);
                EXPECT_GE(mean, 0.97);
                const bool is_long_enough = prompt == 16 || n_tokens == 256;
                if (!is_long_enough || alpha < 0.8) continue;
                EXPECT_GE(*std::min_element(speeds.begin(), speeds.end()), 1.1);
                EXPECT_GE(speeds[7], (n_tokens == 64 ? 0.86 : 0.9) * best); // the best K reads no prompt
            }
}

// A self-draft reads nothing again, but its passes are dear: what it may win is little, and it never loses more.
TEST(Speculation, ADearSelfDraftOnAFastDeviceIsNeverSlower) {
    Bed bed = h100();
    bed.prior.draft_bytes = 1'807'000'000, bed.prior.draft_stages = 143;
    bed.device.c = 0.6;
    for (const double alpha : {0.3, 0.8, 0.95}) {
        double first = 0, last = 0;
        for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
            Engine engine(bed.prior);
            Machine machine(bed.device, seed);
            for (int i = 0; i < 8; ++i) {
                const double one = machine.decode(engine, text_of(alpha, 16), 64, {.shares_cache = true}).speed() / kSeeds;
                if (i == 0) first += one;
                if (i == 7) last += one;
            }
        }
        std::printf("  self-draft, c 0.6, alpha %.2f: best K %.2f, the first text %.3f, the eighth %.3f\n", alpha, best_speed(bed.device, alpha), first, last);
        EXPECT_GE(first, 0.96);
        EXPECT_GE(last, std::max(0.97, 0.9 * best_speed(bed.device, alpha)));
    }
}

// Where bytes and stages and all that was measured agree, what a first draft takes is never paid.
TEST(Speculation, DraftsAsDearAsTheTargetAreNeverTried) {
    Bed bed = {{}, prior_of(4, 1, true)};
    bed.device.target_ms = 4, bed.device.c = 1, bed.device.row = 0.2, bed.device.recording_ms = 90;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
        Machine machine(bed.device, seed);
        Engine engine(bed.prior);
        for (int text = 0; text < 30; ++text)
            for (const DraftChoice& choice : machine.decode(engine, text_of(0.99), 150, {}).choices) ASSERT_EQ(choice.draft_len, 0u) << text;
    }
}

TEST(Speculation, FollowsATextThatChanges) {
    for (const Bed& bed : {beds()[1], beds()[4]}) {
        const double automatic = speed(bed, changing_text(), 1000, {}, 1);
        double best = 0;
        for (const uint32_t draft_len : {0u, 1u, 2u, 3u, 4u, 6u}) best = std::max(best, speed(bed, changing_text(), 1000, {.fixed = draft_len}, 1));
        std::printf("  %-32s changing text: %.2f, best fixed %.2f\n", bed.device.name.c_str(), automatic, best);
        EXPECT_GE(automatic, 0.97 * best);
    }
}

TEST(Speculation, ProposalsComeAndGo) {
    for (const Bed& bed : {beds()[1], beds()[4]}) {
        const double plain_draft = speed(bed, copying_text(), 600, {.model = true, .proposals = false}, 1);
        const double proposals = speed(bed, copying_text(), 600, {.model = false, .proposals = true}, 1);
        const double both = speed(bed, copying_text(), 600, {.model = true, .proposals = true}, 1);
        std::printf("  %-32s useless draft %.2f, proposals %.2f, both %.2f\n", bed.device.name.c_str(), plain_draft, proposals, both);
        EXPECT_GE(plain_draft, 0.97);
        EXPECT_GE(proposals, 1.15);
        EXPECT_GE(both, 0.95 * proposals); // the useless draft is probed now and then
    }
}

// What a search would have proposed is known for nothing: proposals that are wrong are not tried, and those that are right are used
// although a wrong one took all there was to try them with.
TEST(Speculation, ProposalsThatASearchFindsNeedNoTrial) {
    Bed bed = {{}, prior_of(1.6, 1, true)};
    bed.device.target_ms = 1.6, bed.device.c = 1, bed.device.row = 0.4, bed.device.accept_ms = 0.02, bed.device.overhead_ms = 0.07;
    const auto decode = [&](double alpha_before, uint32_t right_from, bool is_searched, uint64_t seed) {
        Engine engine(bed.prior);
        Machine machine(bed.device, seed);
        Text text = text_of(0);
        text.match = [](uint32_t) { return 3u; };
        text.match_alpha = [alpha_before](uint32_t) { return alpha_before; };
        for (int i = 0; i < 8; ++i) machine.decode(engine, text, 64, {.fixed = 4}); // a pair that is known to lose
        engine.long_run.savings = 0;
        text.match_alpha = [right_from](uint32_t at) { return at < right_from ? 0.0 : 1.0; };
        return machine.decode(engine, text, 64, {.model = true, .proposals = true, .is_searched = is_searched});
    };
    double seen = 0, unseen = 0, seen_in_spite = 0;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
        EXPECT_FALSE(drafted(decode(0, 64, true, seed)));
        seen += decode(0, 16, true, seed).speed() / kSeeds;
        unseen += decode(0, 16, false, seed).speed() / kSeeds;
        seen_in_spite += decode(1, 16, true, seed).speed() / kSeeds; // the first are tried, and empty the account
    }
    std::printf("  proposals that are right from token 16 of 64: %.2f of plain where a search finds them, %.2f where somebody is asked, %.2f after texts in which all were right\n", seen, unseen, seen_in_spite);
    EXPECT_GE(seen, 1.15);
    EXPECT_LT(unseen, 1.05);
    EXPECT_GE(seen_in_spite, 1.15);
}

TEST(Speculation, FixedDraftLenIsKeptExactly) {
    Engine engine(beds()[0].prior);
    for (const uint32_t draft_len : {0u, 1u, 5u, 8u}) {
        const Decoded run = Machine(beds()[0].device, 1).decode(engine, text_of(0), 60, {.fixed = draft_len});
        for (const DraftChoice& choice : run.choices) EXPECT_EQ(choice.draft_len, draft_len);
        for (const RoundPlan& plan : run.plans) EXPECT_EQ(plan.shape.draft_len, draft_len);
    }
    // Beside an automatic one, too; and the automatic one never makes the round's share of the fixed one longer.
    SequenceSpeculation a(engine.long_run), b(engine.long_run);
    SpeculatingSequence group[2];
    group[0] = {.state = &a, .may_use_model = true, .is_fixed = true, .fixed_draft_len = 3};
    group[1] = {.state = &b, .may_use_model = true};
    for (int round = 0; round < 20; ++round) {
        const RoundPlan plan = engine.policy.decide(group, 2, false, [](bool, uint32_t) { return true; });
        EXPECT_EQ(group[0].choice.draft_len, 3u);
        EXPECT_GE(plan.shape.draft_len, 3u);
        for (const SpeculatingSequence& sequence : group) engine.policy.observe(*sequence.state, sequence.choice, sequence.choice.draft_len, 0);
    }
}

TEST(Speculation, DoesNotFlap) {
    for (const Bed& bed : beds()) {
        for (const double alpha : {0.1, 0.3, 0.45, 0.6, 0.8, 1.0}) {
            double switches = 0;
            for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
                Engine engine(bed.prior);
                Machine machine(bed.device, seed);
                machine.decode(engine, text_of(alpha), 300, {});
                switches += machine.decode(engine, text_of(alpha), 1500, {}).switches / static_cast<double>(kSeeds);
            }
            // Probes and plain references switch by design, both rarely.
            EXPECT_LE(switches, 50) << bed.device.name << ", alpha " << alpha;
        }
    }
}

TEST(Speculation, NeverReadsALongPromptForADraftThatIsUnknown) {
    Engine engine(beds()[0].prior);
    const Decoded run = Machine(beds()[0].device, 1).decode(engine, text_of(1, 1000), 128, {});
    EXPECT_EQ(run.draft_rows_replayed, 0);
    EXPECT_FALSE(run.summary.reason.empty());
    // Sequences that never drafted leave their allowance: a pair is tried in the end.
    Engine second(beds()[0].prior);
    Machine machine(beds()[0].device, 2);
    double replayed = 0;
    for (int i = 0; i < 6; ++i) replayed += machine.decode(second, text_of(1, 14), 100, {}).draft_rows_replayed;
    EXPECT_GT(replayed, 0);
}

} // namespace
} // namespace auspex::speculation_test
