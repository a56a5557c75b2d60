// Rows without probabilities (all NaN, all -inf, with +inf) and with one NaN, of target and draft, on every path of the acceptance.
// A draft from such a row is rejected and the token is the target's. The target's own such row gives one token of the vocabulary,
// with drafts as without, and the record tells of it.
#include "accept/rule_checks.h"

#include <cfloat>

namespace auspex::not_finite_test {
namespace {

enum class Broken { nan, one_nan, plus_inf, minus_inf };
constexpr std::array kBroken{Broken::nan, Broken::one_nan, Broken::plus_inf, Broken::minus_inf};
constexpr std::array kNames{"NaN", "one NaN", "+inf", "-inf"};
constexpr uint32_t kVocab = 8, kNever = 7; // kNever: said by no target

uint32_t odd_one(uint32_t last) { return (last + 3) % kNever; } // whose logit is NaN or +inf
bool is_broken(bool of_draft, uint32_t last) { return of_draft ? last % 3 != 1 : last % 2 == 1; }

void set_one_hot(float* row, uint32_t token) {
    std::fill_n(row, kVocab, -INFINITY);
    row[token] = 0;
}

struct BrokenCase {
    ModelCase played, promised; // promised: a pair with probabilities everywhere that gives what the played one shall
    Broken how;
};

// `coupled`: the largest key decides, of which +inf is one.
std::vector<BrokenCase> broken_cases(bool of_draft, bool coupled = false) {
    std::vector<BrokenCase> cases;
    for (const Broken how : kBroken)
        for (size_t base : {0u, 1u}) {
            BrokenCase c{model_cases()[base], {}, how};
            for (uint32_t t = 0; t < kVocab; ++t) c.played.target[t * kVocab + kNever] = -INFINITY;
            c.played.name = kNames[static_cast<size_t>(how)];
            c.played.proposals = proposal_cases()[base].proposals;
            c.promised = c.played;
            for (uint32_t t = 0; t < kVocab; ++t) {
                if (!is_broken(of_draft, t)) continue;
                float* row = &(of_draft ? c.played.draft : c.played.target)[t * kVocab];
                float* promised = &(of_draft ? c.promised.draft : c.promised.target)[t * kVocab];
                if (how == Broken::nan || how == Broken::minus_inf) std::fill_n(row, kVocab, how == Broken::nan ? NAN : -INFINITY);
                else row[odd_one(t)] = how == Broken::one_nan ? NAN : INFINITY;
                if (how == Broken::one_nan) promised[odd_one(t)] = -INFINITY;
                else if (of_draft) set_one_hot(promised, kNever); // a draft that is always rejected, and takes nothing from the residual
                else set_one_hot(promised, coupled && how == Broken::plus_inf ? odd_one(t) : 0);
            }
            cases.push_back(c);
        }
    return cases;
}

std::vector<ModelCase> of(const std::vector<BrokenCase>& cases, ModelCase BrokenCase::*which) {
    std::vector<ModelCase> out;
    for (const BrokenCase& c : cases) out.push_back(c.*which);
    return out;
}

class NotFinite : public RuleChecks {
  protected:
    static constexpr uint32_t kDraftLen = 3;
    const uint64_t draws_ = reference::samples_needed(64, 0.05, kAlpha); // of each case and temperature

    // The distribution that the promised pair has.
    void expect_promised(KernelLibrary& library, bool of_draft, const Rules& rules) {
        const bool coupled = rules.acceptance == gpu::kAcceptCoupled;
        const std::vector<BrokenCase> cases = broken_cases(of_draft, coupled);
        auto promised = of(cases, &BrokenCase::promised);
        if (rules.drafts == Rules::Drafts::proposed)
            for (ModelCase& c : promised) propose(c, c.proposals);
        const Verdict verdict = judge(play(library, of(cases, &BrokenCase::played), kDraftLen, draws_, 600, rules), promised, kDraftLen, rules);
        record_properties(verdict);
        EXPECT_GT(verdict.pairs, kAlpha) << verdict.worst;
        EXPECT_GT(verdict.all_pairs, kAlpha);
        EXPECT_GT(verdict.later, kAlpha);
        EXPECT_GT(verdict.after, kAlpha);
        if (!of_draft || coupled) return; // a target's broken row rejects drafts that its promise accepts
        EXPECT_GT(verdict.accepted_len, kAlpha);
        EXPECT_LT(std::abs(verdict.accepted_error), 0.01);
        if (rules.lenience == 1.0f) { EXPECT_LT(std::abs(verdict.overlap_error), 0.01); }
    }

    // Texts of rounds with drafts, from models and proposed, are those of plain rounds.
    void expect_plain_texts(bool of_draft, Rules rules) {
        constexpr uint32_t kSeeds = 60, kTokens = 12;
        const auto cases = of(broken_cases(of_draft), &BrokenCase::played);
        const auto batch = static_cast<uint32_t>(kSeeds * cases.size() * kTemperatures.size());
        const Played plain = play_texts(kernels(), cases, batch, std::vector<uint32_t>(kTokens, 0), 610, rules);
        rules.drafts = Rules::Drafts::alternating;
        const Played drafted = play_texts(kernels(), cases, batch, std::vector<uint32_t>(kTokens, kDraftLen), 610, rules);
        uint32_t n_accepted = 0;
        for (uint32_t s = 0; s < batch; ++s) {
            for (uint32_t i = s * kHistory + 1; i <= s * kHistory + kTokens; ++i) {
                ASSERT_LT(plain.texts[i], kVocab);
                ASSERT_EQ(drafted.texts[i], plain.texts[i]) << cases[s % cases.size()].name << ", slot " << s;
            }
            n_accepted += drafted.records[s].accepted_len;
        }
        EXPECT_GT(n_accepted, batch / 20);
    }
};

class OfEitherModel : public NotFinite, public ::testing::WithParamInterface<bool> {};

TEST_P(OfEitherModel, rejection_has_the_promised_distribution) { expect_promised(kernels(), GetParam(), {}); }
TEST_P(OfEitherModel, lenient_rejection_has_its_own) { expect_promised(kernels(), GetParam(), {.lenience = 0.5f}); }
TEST_P(OfEitherModel, coupled_rounds_have_the_promised_distribution) { expect_promised(kernels(), GetParam(), kCoupled); }
TEST_P(OfEitherModel, coupled_texts_are_those_of_plain_sampling) { expect_plain_texts(GetParam(), kCoupled); }
TEST_P(OfEitherModel, greedy_texts_are_those_of_plain_decoding) { expect_plain_texts(GetParam(), kGreedy); }

// Every record says which tokens come of the target's rows without probabilities, and of no others.
TEST_P(OfEitherModel, records_tell_of_the_targets) {
    const std::vector<BrokenCase> cases = broken_cases(GetParam());
    uint32_t n_told = 0;
    for (const Rules& rules : {Rules{}, kCoupled, kGreedy, Rules{.drafts = Rules::Drafts::proposed}, Rules{.lenience = 0.5f}})
        for (uint32_t draft_len : {0u, kDraftLen})
            for (const gpu::RoundRecord& record : play_texts(kernels(), of(cases, &BrokenCase::played), 800, {draft_len}, 620, rules).records) {
                const auto s = static_cast<size_t>(record.slot);
                uint32_t expected = 0, last = kFirstToken;
                for (uint32_t i = 0; i < record.n_tokens; last = record.tokens[i++])
                    if (!GetParam() && is_broken(false, last) && cases[s % cases.size()].how != Broken::one_nan) expected |= 1u << i;
                ASSERT_EQ(record.not_finite, expected) << cases[s % cases.size()].played.name << ", slot " << s;
                n_told += expected != 0;
            }
    EXPECT_EQ(n_told > 100, !GetParam());
}

// A.5 for the argmax: a walk over the tables.
TEST_P(OfEitherModel, lenient_greedy_rounds_accept_only_numbers) {
    constexpr float kLenience = 0.4f;
    const auto cases = of(broken_cases(GetParam()), &BrokenCase::played);
    auto best = [](const std::vector<float>& table, uint32_t last) {
        std::pair<float, uint32_t> found{-FLT_MAX, 0};
        for (uint32_t i = 0; i < kVocab; ++i)
            if (table[last * kVocab + i] > found.first) found = {table[last * kVocab + i], i};
        return found;
    };
    const Played played = play_texts(kernels(), cases, 160, {kDraftLen}, 630, {.lenience = kLenience, .greedy = true});
    for (uint32_t s = 0; s < 160; ++s) {
        const ModelCase& c = cases[s % cases.size()];
        std::vector<uint32_t> expected;
        uint32_t last = kFirstToken;
        for (uint32_t j = 0; j <= kDraftLen; ++j) {
            const auto [largest, token] = best(c.target, last);
            const uint32_t draft = best(c.draft, last).second;
            const bool accepted = j < kDraftLen && (draft == token || c.target[last * kVocab + draft] - largest >= std::log(kLenience));
            expected.push_back(last = accepted ? draft : token);
            if (!accepted) break;
        }
        const gpu::RoundRecord& record = played.records[s];
        EXPECT_EQ(std::vector<uint32_t>(record.tokens, record.tokens + record.n_tokens), expected) << c.name << ", slot " << s;
    }
}

INSTANTIATE_TEST_SUITE_P(, OfEitherModel, ::testing::Bool(), [](const auto& i) { return i.param ? "draft" : "target"; });

TEST_F(NotFinite, proposals_have_the_promised_distribution) { expect_promised(kernels(), false, {.drafts = Rules::Drafts::proposed}); }

// A test that takes what is no number for a small probability accepts every draft of a NaN row.
TEST_F(NotFinite, a_test_that_compares_them_is_found) {
    const std::unique_ptr<KernelLibrary> library = new_library();
    plant(*library, "accept_test", 25);
    const std::vector<BrokenCase> cases = broken_cases(true);
    const Verdict verdict = judge(play(*library, of(cases, &BrokenCase::played), kDraftLen, draws_, 600), of(cases, &BrokenCase::promised), kDraftLen);
    EXPECT_LT(verdict.pairs, kAlpha);
}

} // namespace
} // namespace auspex::not_finite_test
