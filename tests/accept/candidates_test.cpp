// Several candidates for one position: which one is accepted, and the token, follow the exact distribution; the token
// alone follows the target. One candidate: the bits of an ordinary round. Planted faults must fail.
#include "accept/accept_fixture.h"
#include "accept/model_cases.h"
#include "kernels/accept_candidates.h"
#include "reference/statistics.h"
#include "shared/accept_candidates_args.h"
#include "test_shaders.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace auspex::candidates_test {
namespace {

constexpr double kAlpha = 1e-6; // with fixed seeds: this very run would be a one-in-a-million accident
constexpr gpu::Cut kKeepAll{-INFINITY, ~0u};

// One target row and the rows that candidates are drawn from.
struct CandidateCase {
    const char* name;
    uint32_t vocab;
    float temperature;
    std::vector<float> target;
    std::vector<std::vector<float>> drafts;
    // Per candidate: a draft row that it is drawn from, or ~token where it is chosen.
    std::vector<int> candidates;
    gpu::Cut target_cut = kKeepAll;
    std::vector<gpu::Cut> draft_cuts = {}; // (drafts), or none
    // Rows with what is no number: given to the shaders instead of target and first draft, which say what is promised then; and the
    // token that is drawn from a draft without probabilities.
    std::vector<float> given_target = {}, given_draft = {};
    std::optional<uint32_t> drawn_instead = {};

    uint32_t draft_vocab() const { return drafts.empty() ? vocab : static_cast<uint32_t>(drafts[0].size()); } // the first ids only
    gpu::Cut draft_cut(size_t i) const { return draft_cuts.empty() ? kKeepAll : draft_cuts[i]; }
    reference::Vector distribution(const std::vector<float>& logits, gpu::Cut cut) const {
        reference::Vector z(logits.begin(), logits.end());
        z.resize(vocab, -INFINITY);
        for (uint32_t i = 0; i < vocab; ++i)
            if (z[i] < double(cut.logit) || (z[i] == double(cut.logit) && i > cut.last_id)) z[i] = -INFINITY;
        return reference::softmax(z, double(temperature));
    }
    reference::Vector target_distribution() const { return distribution(target, target_cut); }
    reference::Vector candidate_distribution(size_t i) const {
        if (candidates[i] >= 0) {
            const auto row = static_cast<size_t>(candidates[i]);
            return distribution(drafts[row], draft_cut(row));
        }
        reference::Vector one(vocab, 0.0);
        one[static_cast<size_t>(~candidates[i])] = 1.0;
        return one;
    }
    reference::Table exact() const {
        std::vector<reference::Vector> q;
        for (size_t i = 0; i < candidates.size(); ++i)
            q.push_back(candidate_distribution(i));
        return reference::candidates_distribution(target_distribution(), q);
    }
};

std::vector<CandidateCase> small_cases() {
    reference::DataStream data(21);
    auto logits = [&](uint32_t vocab, float scale) {
        std::vector<float> out(vocab);
        for (float& v : out)
            v = scale * data.normal();
        return out;
    };
    auto rounded = [&](uint32_t vocab) {
        std::vector<float> out = logits(vocab, 1.0f);
        for (float& v : out)
            v = std::round(v);
        return out;
    };
    std::vector<CandidateCase> cases;
    cases.push_back({"three models", 5, 1.0f, logits(5, 1.0f), {logits(5, 1.0f), logits(5, 1.0f), logits(5, 1.0f)}, {0, 1, 2}});
    auto likelihoods = [](std::vector<float> p, float temperature) {
        for (float& v : p)
            v = temperature * std::log(v);
        return p;
    };
    // A draft that likes a token which the target hardly ever says: equal candidates are frequent, and rejected.
    cases.push_back({"three of one model", 5, 0.7f, likelihoods({0.02f, 0.4f, 0.3f, 0.18f, 0.1f}, 0.7f),
                     {likelihoods({0.7f, 0.02f, 0.12f, 0.06f, 0.1f}, 0.7f)}, {0, 0, 0}});
    cases.push_back({"equal", 5, 1.0f, logits(5, 1.0f), {}, {0, 0}});
    cases.back().drafts = {cases.back().target};
    cases.push_back({"disjoint, then not", 5, 1.0f, {0.3f, -INFINITY, 0.9f, -INFINITY, 0.1f},
                     {{-INFINITY, 0.5f, -INFINITY, 0.0f, -INFINITY}, logits(5, 1.0f)}, {0, 0, 1}});
    cases.push_back({"chosen", 5, 1.3f, logits(5, 1.0f), {}, {~2, ~0, ~2}});
    cases.push_back({"all chosen", 5, 1.0f, logits(5, 0.3f), {}, {~0, ~1, ~2, ~3, ~4}});
    cases.push_back({"chosen and drawn", 5, 1.0f, logits(5, 0.7f), {logits(5, 0.7f)}, {~3, 0, ~1, 0}});
    cases.push_back({"ties and cuts", 64, 1.3f, rounded(64), {rounded(64), rounded(64)}, {0, 1, 0, 1}});
    CandidateCase& cut = cases.back();
    cut.target_cut = top_cut(cut.target, 20);
    cut.draft_cuts = {top_cut(cut.drafts[0], 30), top_cut(cut.drafts[1], 9)};
    cases.push_back({"as many as can be", 64, 0.8f, logits(64, 1.0f), {logits(64, 0.8f), logits(64, 1.2f)}, {0, 0, 1, ~7, 1, 0, ~9, 0}});
    cases.push_back({"fewer ids", 7, 0.9f, logits(7, 1.0f), {logits(4, 1.0f), logits(4, 1.0f)}, {0, 1, ~6, 0}});
    cases.push_back({"none", 5, 0.7f, logits(5, 1.0f), {}, {}});
    return cases;
}

CandidateCase large_case() {
    reference::DataStream data(22);
    CandidateCase c{"several chunks", 5003, 0.8f, std::vector<float>(5003), {std::vector<float>(5003)}, {0, 0, ~5000}};
    for (uint32_t i = 0; i < c.vocab; ++i) {
        c.target[i] = data.normal();
        c.drafts[0][i] = 0.6f * c.target[i] + 0.8f * data.normal();
    }
    c.target[5000] = c.target[700] = 5.0f;
    c.target_cut = top_cut(c.target, 3000);
    c.draft_cuts = {top_cut(c.drafts[0], 4000)};
    return c;
}

class Candidates : public GpuTest {
  protected:
    struct Counts {
        std::vector<uint64_t> tokens; // (vocab)
        std::vector<uint64_t> joint;  // (candidates + 1, vocab)
    };
    struct Verdict {
        double token = 1.0, joint = 1.0, index = 1.0; // p-values
        double smallest() const { return std::min({token, joint, index}); }
    };

    // Reduced rows of so many logits: (rows) VocabChoice of a slot with that temperature.
    Buffer reduce(const Buffer& logits, uint32_t vocab, const std::vector<gpu::Cut>& cuts, const CandidateCase& c) {
        const auto n = static_cast<uint32_t>(cuts.size());
        gpu::SlotState state = neutral_state();
        state.temperature = c.temperature;
        const Buffer states = upload(std::vector{state}), rows = upload(std::vector<gpu::Row>(n, plain_row(0, 0, 0)));
        const Buffer cut_buffer = upload(cuts), partials = output<gpu::VocabChoice>(n * vocab_chunks(vocab));
        Buffer choices = output<gpu::VocabChoice>(n);
        if (n == 0) return choices;
        run([&](Recorder& to) {
            record_vocab_partials(to, logits.view(), states.view(), partials.view(), {.vocab = vocab, .n_rows = n, .rows = rows.view(), .cuts = cut_buffer.view()});
            to.cmd.barrier();
            record_pick(to, partials.view(), choices.view(), n, vocab, cut_buffer.view());
        });
        return choices;
    }

    Counts draw(KernelLibrary& library, const CandidateCase& c, uint64_t draws, uint32_t seed) {
        const auto n = static_cast<uint32_t>(c.candidates.size());
        const auto batch = static_cast<uint32_t>(std::min<uint64_t>(draws, 4000));
        std::vector<float> draft_values;
        std::vector<gpu::Cut> draft_cuts;
        for (size_t i = 0; i < c.drafts.size(); ++i) {
            const std::vector<float>& row = i == 0 && !c.given_draft.empty() ? c.given_draft : c.drafts[i];
            draft_values.insert(draft_values.end(), row.begin(), row.end());
            draft_cuts.push_back(c.draft_cut(i));
        }
        const Buffer target = upload(c.given_target.empty() ? c.target : c.given_target), draft = upload(draft_values);
        const Buffer target_choices = reduce(target, c.vocab, {c.target_cut}, c), draft_choices = reduce(draft, c.draft_vocab(), draft_cuts, c);
        std::vector<reference::Vector> cumulative;
        for (uint32_t i = 0; i < n; ++i) {
            cumulative.push_back(c.candidate_distribution(i));
            std::partial_sum(cumulative[i].begin(), cumulative[i].end(), cumulative[i].begin());
        }
        Counts counts{std::vector<uint64_t>(c.vocab), std::vector<uint64_t>(size_t{n + 1} * c.vocab)};
        reference::DataStream data(seed);
        Buffer state = output<gpu::SlotState>(batch), entries = output<gpu::CandidateEntry>(batch);
        Buffer list = output<gpu::Candidate>(size_t{batch} * std::max(n, 1u));
        const Buffer outcomes = output<gpu::CandidateOutcome>(batch);
        auto* to_state = reinterpret_cast<gpu::SlotState*>(state.mapped());
        auto* to_entry = reinterpret_cast<gpu::CandidateEntry*>(entries.mapped());
        auto* to_list = reinterpret_cast<gpu::Candidate*>(list.mapped());
        for (uint64_t done = 0; done < draws; done += batch) {
            for (uint32_t e = 0; e < batch; ++e) {
                gpu::SlotState s = neutral_state();
                s.temperature = c.temperature;
                s.seed_low = static_cast<uint32_t>(done) + e;
                s.seed_high = seed;
                to_state[e] = s;
                to_entry[e] = {1, e, 17 + e % 5, 0, e * n, n};
                for (uint32_t i = 0; i < n; ++i) {
                    if (c.candidates[i] < 0) {
                        to_list[e * n + i] = {static_cast<uint32_t>(~c.candidates[i]), kPoison, 1};
                        continue;
                    }
                    const double u = (double(data.bits()) + 0.5) * 0x1p-32 * cumulative[i].back();
                    const auto at = std::upper_bound(cumulative[i].begin(), cumulative[i].end(), u);
                    const auto drawn = static_cast<uint32_t>(at - cumulative[i].begin());
                    to_list[e * n + i] = {c.candidates[i] == 0 ? c.drawn_instead.value_or(drawn) : drawn,
                                          static_cast<uint32_t>(c.candidates[i]), 0};
                }
            }
            run(library, [&](Recorder& to) {
                record_accept_candidates(to,
                                         {.target_logits = target.view(), .draft_logits = draft.view(), .target_choices = target_choices.view(),
                                          .draft_choices = draft_choices.view(), .state = state.view(), .entries = entries.view(),
                                          .candidates = list.view(), .outcomes = outcomes.view()},
                                         batch, c.vocab, c.draft_vocab());
            });
            const auto* found = reinterpret_cast<const gpu::CandidateOutcome*>(outcomes.mapped());
            for (uint32_t e = 0; e < batch; ++e) {
                const bool sane = found[e].accepted <= n && found[e].token < c.vocab &&
                                  (found[e].accepted == n || found[e].token == to_list[e * n + found[e].accepted].token);
                EXPECT_TRUE(sane) << c.name << ": candidate " << found[e].accepted << ", token " << found[e].token;
                if (!sane) return counts;
                ++counts.tokens[found[e].token];
                ++counts.joint[size_t{found[e].accepted} * c.vocab + found[e].token];
            }
        }
        return counts;
    }

    Verdict judge(const CandidateCase& c, const Counts& counts) {
        const reference::Table exact = c.exact();
        reference::Vector joint, index, tokens = c.target_distribution();
        std::vector<uint64_t> by_index;
        for (size_t i = 0; i < exact.size(); ++i) {
            joint.insert(joint.end(), exact[i].begin(), exact[i].end());
            index.push_back(std::accumulate(exact[i].begin(), exact[i].end(), 0.0));
            const auto row = counts.joint.begin() + static_cast<ptrdiff_t>(i * c.vocab);
            by_index.push_back(std::accumulate(row, row + static_cast<ptrdiff_t>(c.vocab), uint64_t{0}));
            if (index.back() < 1e-12) index.back() = 0.0; // what is left when everything was chosen
        }
        if (index.back() == 0.0) std::fill(joint.end() - static_cast<ptrdiff_t>(c.vocab), joint.end(), 0.0);
        return {reference::fit(counts.tokens, tokens).p_value, reference::fit(counts.joint, joint).p_value,
                reference::fit(by_index, index).p_value};
    }
    void expect_exact(const CandidateCase& c, uint64_t draws, uint32_t seed) {
        SCOPED_TRACE(c.name);
        const reference::Table exact = c.exact();
        const reference::Vector target = c.target_distribution();
        for (uint32_t t = 0; t < c.vocab; ++t) { // the theorem
            double sum = 0.0;
            for (const reference::Vector& row : exact)
                sum += row[t];
            ASSERT_NEAR(sum, target[t], 1e-12);
        }
        const Verdict verdict = judge(c, draw(kernels(), c, draws, seed));
        EXPECT_GT(verdict.token, kAlpha);
        EXPECT_GT(verdict.joint, kAlpha);
        EXPECT_GT(verdict.index, kAlpha);
        RecordProperty(c.name, "draws " + std::to_string(draws) + ", p of token " + std::to_string(verdict.token) +
                                   ", with candidate " + std::to_string(verdict.joint) + ", of candidate " +
                                   std::to_string(verdict.index));
    }
};

// Enough to see a shift of 0.02 in total variation with power 0.99.
TEST_F(Candidates, have_the_targets_distribution) {
    uint32_t seed = 500;
    for (const CandidateCase& c : small_cases())
        expect_exact(c, reference::samples_needed(c.vocab, 0.02, kAlpha), ++seed);
}
TEST_F(Candidates, have_the_targets_distribution_over_several_chunks) {
    expect_exact(large_case(), 8000, 520);
}
// Through shared memory: the same bits with as many lanes, right ones with more.
TEST_F(Candidates, do_not_depend_on_how_lanes_exchange) {
    const CandidateCase c = large_case();
    const Counts native = draw(kernels(), c, 500, 525);
    EXPECT_EQ(draw(kernels(Variant::shared), c, 500, 525).joint, native.joint);
    for (const Variant variant : {Variant::lanes_16, Variant::lanes_32})
        EXPECT_GT(judge(c, draw(kernels(variant), c, 500, 525)).smallest(), kAlpha) << variant_name(variant);
}

struct NoNumbers {
    const char *name, *beside_others;
    float odd;            // the logit of kOdd; or of all
    bool everywhere;
    uint32_t best;        // what is drawn from it
};
constexpr uint32_t kOdd = 2, kNever = 5, kBrokenVocab = 6; // no target says kNever
const NoNumbers kNoNumbers[] = {{"NaN", "NaN beside others", NAN, true, 0},
                                {"-inf", "-inf beside others", -INFINITY, true, 0},
                                {"+inf", "+inf beside others", INFINITY, false, kOdd}};

std::vector<float> with_one_more(std::vector<float> row) {
    row.push_back(-INFINITY);
    return row;
}
std::vector<float> but_for_odd(std::vector<float> row, float odd) {
    row[kOdd] = odd;
    return row;
}
std::vector<float> broken(const NoNumbers& how, const std::vector<float>& row) {
    return how.everywhere ? std::vector<float>(row.size(), how.odd) : but_for_odd(row, how.odd);
}

// Candidates of a draft without probabilities, before and after sound ones: rejected, and they take nothing from the residual. One
// NaN is one token without probability.
std::vector<CandidateCase> broken_cases() {
    const CandidateCase sound = small_cases()[0];
    const std::vector<float> target = with_one_more(sound.target), draft = with_one_more(sound.drafts[0]), other = with_one_more(sound.drafts[1]);
    std::vector<float> never(kBrokenVocab, -INFINITY);
    never[kNever] = 0;
    std::vector<CandidateCase> cases;
    for (const NoNumbers& how : kNoNumbers)
        for (const std::vector<int>& candidates : {std::vector{0}, std::vector{0, 1}, std::vector{1, 0}, std::vector{0, 1, ~3, 0}}) {
            cases.push_back({candidates.size() == 1 ? how.name : how.beside_others, kBrokenVocab, 1.0f, target, {never, other}, candidates});
            cases.back().given_draft = broken(how, draft);
            cases.back().drawn_instead = how.best;
        }
    cases.push_back({"one NaN of the target", kBrokenVocab, 1.0f, but_for_odd(target, -INFINITY), {draft, other}, {0, 1, 0}});
    cases.back().given_target = but_for_odd(target, NAN);
    cases.push_back({"one NaN of a draft", kBrokenVocab, 0.7f, target, {but_for_odd(draft, -INFINITY), other}, {0, 1, 0}});
    cases.back().given_draft = but_for_odd(draft, NAN);
    return cases;
}

TEST_F(Candidates, have_the_targets_distribution_beside_rows_without_probabilities) {
    uint32_t seed = 540;
    for (const CandidateCase& c : broken_cases())
        expect_exact(c, 8000, ++seed);
}
// What such a target gives is one token, whatever was proposed.
TEST_F(Candidates, of_a_target_without_probabilities_are_rejected) {
    for (const NoNumbers& how : kNoNumbers) {
        CandidateCase c = small_cases()[0];
        c.given_target = broken(how, c.target);
        const Counts counts = draw(kernels(), c, 1000, 560);
        const size_t none_accepted = c.candidates.size() * c.vocab; // and token 0
        EXPECT_EQ(counts.joint[none_accepted], 1000u) << how.name;
    }
}

// One candidate of each kind against a round of one draft: the same uniform, the same noise, the same bits.
class OneCandidate : public AcceptFixture {};

TEST_F(OneCandidate, is_an_ordinary_round) {
    constexpr uint32_t kBatch = 600, kVocab = 2100;
    reference::DataStream data(6);
    AcceptInput in(kBatch, 1, kVocab, 8);
    std::vector<gpu::CandidateEntry> entries;
    std::vector<gpu::Candidate> list;
    for (uint32_t b = 0; b < kBatch; ++b) {
        gpu::SlotState& state = in.states[kBatch - 1 - b] = neutral_state();
        state.live = 1;
        state.max_generated = state.max_context = 1000;
        state.temperature = b % 3 ? 0.7f : b % 2 ? 1.0f : 0.0f;
        state.seed_low = data.bits();
        const uint32_t one_hot = b % 4 == 0;
        in.round_slots[b] = {kBatch - 1 - b, 1, 2 + b % 3, b % 50 ? 1u : 0u, one_hot};
        for (float& v : in.target_row(b, 0))
            v = 2.0f * data.normal();
        std::ranges::copy(in.target_row(b, 0), in.draft_row(b, 0).begin());
        for (float& v : in.draft_row(b, 0))
            v += 0.4f * data.normal();
        const auto row = in.draft_row(b, 0);
        in.drafts[b] = static_cast<uint32_t>(std::ranges::max_element(row) - row.begin());
        entries.push_back({in.round_slots[b].live, in.round_slots[b].slot, in.round_slots[b].start + 1, 2 * b, b, 1});
        list.push_back({in.drafts[b], b, one_hot});
    }
    const AcceptOutput rounds = accept(in);
    const Buffer target = upload(in.target), draft = upload(in.draft), state = upload(in.states);
    const Buffer target_rows = upload(chain_rows(in.round_slots, 1)), draft_rows = upload(chain_rows(in.round_slots, 0));
    const Buffer entry_buffer = upload(entries), list_buffer = upload(list), outcomes = output<gpu::CandidateOutcome>(kBatch);
    const uint32_t chunks = vocab_chunks(kVocab);
    const Buffer target_partials = output<gpu::VocabChoice>(2 * kBatch * chunks),
                 draft_partials = output<gpu::VocabChoice>(kBatch * chunks);
    const Buffer target_choices = output<gpu::VocabChoice>(2 * kBatch), draft_choices = output<gpu::VocabChoice>(kBatch);
    run([&](Recorder& to) {
        record_vocab_partials(to, target.view(), state.view(), target_partials.view(), {.vocab = kVocab, .n_rows = 2 * kBatch, .rows = target_rows.view()});
        record_vocab_partials(to, draft.view(), state.view(), draft_partials.view(), {.vocab = kVocab, .n_rows = kBatch, .rows = draft_rows.view()});
        to.cmd.barrier();
        record_pick(to, target_partials.view(), target_choices.view(), 2 * kBatch, kVocab);
        record_pick(to, draft_partials.view(), draft_choices.view(), kBatch, kVocab);
        to.cmd.barrier();
        record_accept_candidates(to,
                                 {.target_logits = target.view(), .draft_logits = draft.view(), .target_choices = target_choices.view(),
                                  .draft_choices = draft_choices.view(), .state = state.view(), .entries = entry_buffer.view(),
                                  .candidates = list_buffer.view(), .outcomes = outcomes.view()},
                                 kBatch, kVocab, kVocab);
    });
    const auto found = read<gpu::CandidateOutcome>(outcomes, kBatch);
    uint32_t n_accepted = 0, n_live = 0;
    for (uint32_t b = 0; b < kBatch; ++b) {
        if (!entries[b].live) {
            EXPECT_EQ(found[b].token, kPoison);
            continue;
        }
        ++n_live;
        EXPECT_EQ(found[b].accepted == 0, rounds.records[b].accepted_len == 1) << "entry " << b;
        EXPECT_EQ(found[b].token, rounds.records[b].tokens[0]) << "entry " << b;
        n_accepted += found[b].accepted == 0;
    }
    EXPECT_GT(n_accepted, n_live / 10);
    EXPECT_LT(n_accepted, n_live * 9 / 10);
}

struct Fault {
    int number;
    const char* name;
    const char* seen_in; // the case
};
const Fault kFaults[] = {
    {1, "equal_candidates_merged", "three of one model"},
    {2, "residual_not_normalised", "three models"},
    {3, "one_uniform_for_all_candidates", "three models"},
    {4, "chosen_candidates_keep_their_weight", "chosen and drawn"},
    {5, "rows_without_probabilities_are_compared", "NaN"},
};

class CandidateFault : public Candidates, public ::testing::WithParamInterface<Fault> {};

TEST_P(CandidateFault, is_found) {
    const std::unique_ptr<KernelLibrary> library = new_library();
    for (const std::string variant : {"accept_candidates", "accept_candidates.subgroup"}) {
        const auto spirv = test_shader(variant + ".fault" + std::to_string(GetParam().number));
        ASSERT_FALSE(spirv.empty());
        library->replace(variant, spirv);
    }
    std::vector<CandidateCase> cases = small_cases();
    std::ranges::copy(broken_cases(), std::back_inserter(cases));
    for (const CandidateCase& c : cases) {
        if (std::string(c.name) != GetParam().seen_in) continue;
        const Verdict verdict = judge(c, draw(*library, c, 20000, 530));
        EXPECT_LT(verdict.token, kAlpha) << "the check does not see " << GetParam().name; // as users would
        RecordProperty("p_token", std::to_string(verdict.token));
        EXPECT_GT(judge(c, draw(kernels(), c, 20000, 530)).smallest(), kAlpha);
    }
}
INSTANTIATE_TEST_SUITE_P(, CandidateFault, ::testing::ValuesIn(kFaults), [](const auto& i) { return i.param.name; });

} // namespace
} // namespace auspex::candidates_test
