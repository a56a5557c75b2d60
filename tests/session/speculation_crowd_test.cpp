// draft_len auto where many sequences share rounds and come and go: on a simulated fast device, with what drafts cost the others.
#include "session/speculation_beds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <list>

namespace auspex::speculation_crowd_test {
namespace {

using namespace simulated;
using simulated::Device;
using simulated::Engine;

// The bundled pair on an H100: rounds take 0.2 ms, so whatever comes between them weighs.
Bed small_pair_on_h100() {
    Bed bed = {{}, {.target_bytes = 40'000'000, .draft_bytes = 8'000'000, .target_stages = 45, .draft_stages = 14, .is_cpu = false}};
    Device& device = bed.device;
    device.target_ms = 0.157, device.c = 0.3, device.accept_ms = 0.01, device.overhead_ms = 0.03, device.noise = 0.02, device.recording_ms = 0.15;
    device.measured_v = {{1, 1}, {2, 1.045}, {3, 1.16}, {4, 1.22}, {5, 1.38}, {6, 1.465}, {8, 1.57}, {12, 2.05}, {16, 2.25}, {32, 4.5}, {64, 9}};
    device.measured_catch_up_ms = {{1, 0.1}, {64, 0.12}};
    return bed;
}

struct Crowd {
    struct Sequence {
        SequenceSpeculation state;
        double alpha;
        uint32_t n_tokens, prompt, at = 0, known_at = 0, draft_rows = 0;
        bool is_unread = false;
        DraftChoice choice = {};
        uint32_t tested = 0, accepted = 0;
    };
    struct Result {
        double ms = 0, catch_ups_ms = 0;
        uint32_t tokens = 0, rounds = 0, drafting = 0;
    };
    Engine& engine;
    Bed bed;
    std::mt19937_64 random;
    bool after_round = false;

    double noise() { return std::exp(bed.device.noise * std::normal_distribution<double>()(random)); }

    Result run(uint32_t n, bool is_auto, const std::vector<double>& alphas, uint32_t n_predict) {
        const Device& device = bed.device;
        Result r;
        std::list<Sequence> live;
        std::vector<uint32_t> left(n, 3), comes_at(n);
        std::vector<Sequence*> of(n);
        for (uint32_t& at : comes_at) at = static_cast<uint32_t>(random() % 9);
        uint32_t n_begun = 0;
        for (;;) {
            bool arrives = false, is_over = true;
            for (uint32_t i = 0; i < n; ++i) {
                if (!of[i] && left[i] > 0 && (live.empty() || r.rounds >= comes_at[i])) {
                    live.push_back({SequenceSpeculation(engine.long_run), alphas[n_begun++ % alphas.size()], n_predict / 2 + static_cast<uint32_t>(random() % n_predict), 12});
                    of[i] = &live.back();
                    left[i] -= 1;
                    arrives = true;
                }
                is_over = is_over && !of[i] && left[i] == 0;
            }
            if (is_over) return r;
            if (arrives) r.ms += 0.25, after_round = false;
            std::vector<Sequence*> group;
            for (Sequence& one : live)
                if (one.at < one.n_tokens) group.push_back(&one);
            std::vector<SpeculatingSequence> asked;
            for (Sequence* one : group) {
                const uint32_t have = one->prompt + one->known_at, lag = have - std::min(have, one->draft_rows);
                asked.push_back({.state = &one->state, .may_use_model = true, .is_fixed = !is_auto, .fixed_draft_len = 0, .lag_rows = lag > 2 ? (lag + 15) / 16 * 16 : 0, .tokens_left = one->n_tokens - one->at});
            }
            if (!group.empty()) engine.policy.decide(asked, std::bit_ceil(static_cast<uint32_t>(group.size())), false, [](bool, uint32_t) { return true; });
            RoundShape shape;
            uint32_t n_in = 0, catch_up_rows = 0;
            std::vector<std::tuple<Sequence*, DraftChoice, uint32_t, uint32_t>> outcomes;
            for (size_t i = 0; i < group.size(); ++i) {
                Sequence& one = *group[i];
                const DraftChoice& choice = asked[i].choice;
                if (choice.catch_up) {
                    if (!one.is_unread) {
                        catch_up_rows += one.prompt + one.at - one.draft_rows;
                        one.draft_rows = one.prompt + one.at;
                        one.known_at = one.at;
                    }
                    continue;
                }
                n_in += 1;
                shape.model |= choice.draft_len > 0;
                shape.draft_len = std::max(shape.draft_len, choice.draft_len);
                const uint32_t tested = std::min(choice.draft_len, one.n_tokens - one.at);
                uint32_t accepted = 0;
                while (accepted < tested && std::uniform_real_distribution<double>()(random) < one.alpha) accepted += 1;
                outcomes.push_back({&one, choice, tested, accepted});
            }
            if (n_in > 0) {
                shape.batch = std::bit_ceil(n_in);
                const double factor = noise(), wall = device.round_ms(shape) * factor;
                ObservedRound times = {device.draft_ms(shape) * factor, device.target_ms * device.v(shape.rows()) * factor, device.accept_ms * factor, wall};
                times.is_steady = after_round;
                const double recording = engine.warm.insert(shape).second ? 2 * device.recording_ms : 0;
                times.recording_ms = recording / 2;
                engine.costs.observe(shape, times);
                r.ms += wall + recording;
                r.rounds += 1;
                r.drafting += shape.draft_len > 0;
                after_round = true;
            }
            for (Sequence& one : live) // the round before is read
                if (one.is_unread) {
                    engine.policy.observe(one.state, one.choice, one.tested, one.accepted);
                    one.known_at += one.accepted + 1;
                    one.is_unread = false;
                }
            for (const auto& [one, choice, tested, accepted] : outcomes) {
                if (choice.draft_len > 0) one->draft_rows = one->prompt + one->at + accepted;
                one->at += accepted + 1;
                r.tokens += accepted + 1;
                one->choice = choice, one->tested = tested, one->accepted = accepted, one->is_unread = true;
            }
            if (catch_up_rows > 0) {
                const double ms = device.catch_up_ms(catch_up_rows) * noise();
                engine.costs.observe_catch_up(std::bit_ceil(catch_up_rows), ms, 0);
                r.ms += ms + 0.03;
                r.catch_ups_ms += ms + 0.03;
                after_round = false;
            }
            for (uint32_t i = 0; i < n; ++i)
                if (of[i] && of[i]->at >= of[i]->n_tokens && !of[i]->is_unread) {
                    const Sequence* ended = of[i];
                    live.remove_if([&](const Sequence& one) { return &one == ended; });
                    of[i] = nullptr;
                    comes_at[i] = r.rounds + static_cast<uint32_t>(random() % 9);
                }
            // the last one's outcome is read once nothing else is under way
            if (std::all_of(live.begin(), live.end(), [](const Sequence& one) { return one.at >= one.n_tokens; }))
                for (Sequence& one : live)
                    if (one.is_unread) engine.policy.observe(one.state, one.choice, one.tested, one.accepted), one.known_at = one.at, one.is_unread = false;
        }
    }
};

// Neither probes nor catch-ups for drafts that do not come take what company would have had of its rounds.
TEST(SpeculationCrowd, DraftsCostTheOthersLittleAndEndWhereTheBatchFillsTheDevice) {
    const Bed bed = small_pair_on_h100();
    const std::vector<double> kinds = {0.9, 0.8, 0.8, 0.6, 0.5, 0.45, 0.4, 0.3}; // of prompts
    for (const std::vector<double>& alphas : {kinds, {0.3}, {0.6}, {0.9}})
        for (const uint32_t n : {1u, 2u, 4u, 8u, 16u}) {
            double ratio = 0, catch_ups_ms = 0, ms = 0;
            uint32_t drafting = 0, rounds = 0;
            constexpr int kSeeds = 8, kRepetitions = 3; // after one that records
            for (int seed = 1; seed <= kSeeds; ++seed) {
                Engine engine(bed.prior);
                for (int repetition = 0; repetition <= kRepetitions; ++repetition) {
                    const auto run = [&](bool is_auto) {
                        Crowd crowd{engine, bed, std::mt19937_64(static_cast<uint64_t>(seed * 100 + repetition))};
                        return crowd.run(n, is_auto, alphas, 64);
                    };
                    const Crowd::Result plain = run(false), automatic = run(true);
                    if (repetition == 0) continue;
                    ratio += automatic.tokens / automatic.ms / (plain.tokens / plain.ms) / (kRepetitions * kSeeds);
                    catch_ups_ms += automatic.catch_ups_ms, ms += automatic.ms;
                    drafting += automatic.drafting, rounds += automatic.rounds;
                }
            }
            std::printf("  %2u at once, alpha %s%.1f: auto / plain %.3f, %.0f %% of the rounds draft, catch-ups take %.1f %%\n", n, alphas.size() > 1 ? "0.3 to " : "", alphas[0], ratio,
                        100.0 * drafting / rounds, 100 * catch_ups_ms / ms);
            EXPECT_GE(ratio, 0.97) << n << " at once, alpha " << alphas[0];
            if (alphas.size() == 1 && alphas[0] == 0.9 && n <= 4) { EXPECT_GE(ratio, n == 1 ? 1.5 : n == 2 ? 1.2 : 1.05); }
            if (n >= 8 && alphas[0] <= 0.6) { EXPECT_GE(ratio, 0.985); }
            if (n == 16) { EXPECT_LE(drafting, 0.1 * rounds); }
        }
}

} // namespace
} // namespace auspex::speculation_crowd_test
