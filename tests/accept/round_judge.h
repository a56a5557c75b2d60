// What many rounds of the rig gave, and how well it agrees with what their rules promise.
#pragma once

#include "accept/model_cases.h"
#include "reference/statistics.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <string>

namespace auspex {

constexpr double kAlpha = 1e-6; // with fixed seeds: this very run would be a one-in-a-million accident

// What the slots of a rig do, other than what an engine does when nobody asks for anything.
struct Rules {
    enum class Drafts { model, proposed, alternating }; // alternating: every other slot of a case is proposed to
    Drafts drafts = Drafts::model;
    uint32_t acceptance = gpu::kAcceptRejection;
    float lenience = 1;
    bool with_cuts = false; // the cases' cuts apply
    bool greedy = false;    // temperature 0 instead of kTemperatures
};

// What many rounds gave, per case and temperature.
struct Tally {
    std::vector<uint64_t> pairs; // (vocab, vocab): the first two tokens
    std::vector<uint64_t> later; // (vocab, vocab): a token of the first round and the one after it, from the third on
    std::vector<uint64_t> after; // (vocab, vocab): the last token of the first round and the plain one after it
    std::vector<uint64_t> accepted_len; // (draft_len + 1) of the first round
    uint64_t tested = 0, accepted = 0;  // drafts of the first round, up to the first rejected one
    double overlap = 0.0;               // as the records sum it
};

// p-values; the smallest over all cases and temperatures where there is one for each.
struct Verdict {
    double pairs = 1.0;     // of the worst case
    double all_pairs = 1.0; // of the sum of all chi-squares
    double later = 1.0;
    double after = 1.0;
    double accepted_len = 1.0;
    // Not p-values: distance of the mean overlap, and of the accepted share, from what they should be.
    double overlap_error = 0.0, accepted_error = 0.0;
    uint64_t tested = 0;
    std::string worst;

    double smallest() const { return std::min({pairs, all_pairs, later, after, accepted_len}); }
};
// The first two tokens as the target alone gives them.
inline reference::Vector joint(const reference::Table& target) {
    reference::Vector out;
    for (double a : target[kFirstToken])
        for (double b : target[out.size() / target.size()])
            out.push_back(a * b);
    return out;
}
// The first two tokens of a round and a plain one.
inline reference::Vector pairs_of(const reference::RoundDistribution& round, const reference::Table& target) {
    const size_t vocab = target.size();
    reference::Vector out(vocab * vocab, 0.0);
    for (const auto& [tokens, probability] : round.emitted)
        for (size_t b = 0; b < vocab; ++b)
            if (tokens.size() == 1) out[tokens[0] * vocab + b] += probability * target[tokens[0]][b];
            else if (b == tokens[1]) out[tokens[0] * vocab + b] += probability;
    return out;
}

// Coupled rounds: accepted lengths and what follows from them are not judged. Lenient ones: neither later tokens.
inline Verdict judge(const std::vector<Tally>& tallies, const std::vector<ModelCase>& cases, uint32_t draft_len,
                     const Rules& rules = {}) {
    Verdict verdict;
    const bool lenient = rules.lenience < 1.0f;
    double statistic = 0.0, degrees = 0.0, accepted = 0.0, tested = 0.0, found_overlap = 0.0, found_accepted = 0.0;
    for (size_t g = 0; g < tallies.size(); ++g) {
        const ModelCase& c = cases[g % cases.size()];
        const float temperature = kTemperatures[g / cases.size()];
        const bool cut = rules.with_cuts;
        const reference::Table target = table_of(cut ? cut_logits(c.target, c.target_cuts) : c.target, temperature),
                               draft = table_of(cut ? cut_logits(c.draft, c.draft_cuts) : c.whole_draft(), temperature);
        const auto round =
            reference::round_distribution(target, draft, kFirstToken, draft_len, double(rules.lenience));
        const reference::Fit pairs =
            reference::fit(tallies[g].pairs, lenient ? pairs_of(round, target) : joint(target));
        if (pairs.p_value <= verdict.pairs)
            verdict.worst = std::string(c.name) + " at temperature " + std::to_string(temperature) +
                            ", chi-square " + std::to_string(pairs.statistic) + " over " +
                            std::to_string(pairs.bins) + " bins; " + pairs.note;
        statistic += pairs.statistic;
        degrees += pairs.bins - 1.0;
        verdict.pairs = std::min(verdict.pairs, pairs.p_value);
        verdict.after = std::min(verdict.after, reference::fit_rows(tallies[g].after, target).p_value);
        if (!lenient)
            verdict.later = std::min(verdict.later, reference::fit_rows(tallies[g].later, target).p_value);
        if (rules.acceptance == gpu::kAcceptCoupled) continue;
        const reference::Fit lens = reference::fit(tallies[g].accepted_len, round.accepted_len);
        verdict.accepted_len = std::min(verdict.accepted_len, lens.p_value);
        // A draft is accepted with probability Σ min(draft, target / lenience); without lenience a tested draft's
        // min(1, target / draft) has that mean too.
        double n = 0.0, at_least = 1.0;
        for (uint64_t count : tallies[g].accepted_len)
            n += double(count);
        for (uint32_t j = 0; j < draft_len; ++j) {
            tested += n * at_least;
            at_least -= round.accepted_len[j];
            accepted += n * at_least;
        }
        verdict.tested += tallies[g].tested;
        found_overlap += tallies[g].overlap;
        found_accepted += double(tallies[g].accepted);
    }
    verdict.all_pairs = reference::chi_square_p(statistic, degrees);
    if (verdict.tested > 0) {
        verdict.overlap_error = found_overlap / double(verdict.tested) - accepted / tested;
        verdict.accepted_error = found_accepted / double(verdict.tested) - accepted / tested;
    }
    return verdict;
}

inline void record_properties(const Verdict& v) {
    ::testing::Test::RecordProperty("p_worst_case", std::to_string(v.pairs));
    ::testing::Test::RecordProperty("p_all_cases", std::to_string(v.all_pairs));
    ::testing::Test::RecordProperty("p_later", std::to_string(v.later));
    ::testing::Test::RecordProperty("p_after", std::to_string(v.after));
    ::testing::Test::RecordProperty("p_accepted_len", std::to_string(v.accepted_len));
    ::testing::Test::RecordProperty("overlap_error", std::to_string(v.overlap_error));
    ::testing::Test::RecordProperty("accepted_error", std::to_string(v.accepted_error));
    ::testing::Test::RecordProperty("tested_drafts", std::to_string(v.tested));
    ::testing::Test::RecordProperty("worst", v.worst);
}

} // namespace auspex
