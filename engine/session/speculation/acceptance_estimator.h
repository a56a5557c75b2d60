// How often drafts are accepted, from outcomes of committed rounds. Two horizons of the same counts: of one sequence
// (the last few rounds) and of a pair of models (its long run, the weak prior of every new sequence). Knows no times.
#pragma once

#include <array>
#include <cstdint>

namespace auspex {

// Drafts of one class are about equally likely to be accepted. Proposals are tokens that cost no model pass (found
// by a search); a longer match with the text before makes them better.
enum class DraftClass : uint32_t { model = 0, match_2 = 1, match_4 = 2, match_8 = 3 }; // match_n: n or more
constexpr uint32_t kDraftClasses = 4;

inline DraftClass proposal_class(uint32_t match_len) {
    return match_len >= 8 ? DraftClass::match_8 : match_len >= 4 ? DraftClass::match_4 : DraftClass::match_2;
}

// Sums over rounds, older ones discounted.
struct AcceptanceCounts {
    double accepted = 0, tested = 0; // drafts; alpha = accepted / tested
    double supplied = 0, asked = 0;  // rounds: those that had any draft, of those that were to have some

    // A round tested drafts until the first failure: `accepted` successes, and one failure unless all were accepted.
    // Full acceptance is a lower bound of the run's length, so averaging accepted / draft_len would be biased upwards
    // for small draft_len and downwards for large ones.
    void add(uint32_t draft_len, uint32_t accepted_len, double keep_drafts, double keep_rounds);
};

// The long run of one pair of models on all texts, of which the last ones weigh most; speculation_store keeps it.
class LongRun {
  public:
    double alpha(DraftClass drafts) const;
    double supply(DraftClass drafts) const;
    bool is_known(DraftClass drafts) const; // enough was tested to invest on its word
    void observe(DraftClass drafts, uint32_t draft_len, uint32_t accepted_len);

    // For a probe: each plain round of a text that has not tested the draft model adds one token's allowance. Later texts spend it.
    double savings = 0; // tokens

    const AcceptanceCounts& counts(DraftClass drafts) const { return counts_[static_cast<uint32_t>(drafts)]; }
    const AcceptanceCounts& recent(DraftClass drafts) const { return recent_[static_cast<uint32_t>(drafts)]; }
    void restore(DraftClass drafts, const AcceptanceCounts& counts, const AcceptanceCounts& recent) {
        counts_[static_cast<uint32_t>(drafts)] = counts;
        recent_[static_cast<uint32_t>(drafts)] = recent;
    }

  private:
    std::array<AcceptanceCounts, kDraftClasses> counts_ = {}, recent_ = {}; // of all texts, of about the last two
};

class AcceptanceEstimator {
  public:
    explicit AcceptanceEstimator(const LongRun& prior);

    // The outcome of one round of this sequence. draft_len: drafts that were there to be tested, not what was asked for;
    // 0: drafts were asked for and there were none (a proposal whose match had ended).
    void observe(DraftClass drafts, uint32_t draft_len, uint32_t accepted_len);

    double alpha(DraftClass drafts) const;    // of one draft, given that those before it were accepted; in [0, 1]
    double supply(DraftClass drafts) const;   // probability that a round asked to draft has drafts
    double accepted(DraftClass drafts) const; // drafts, discounted
    double evidence(DraftClass drafts) const; // drafts tested, discounted; 0: only the prior speaks
    // What is known is old: it weighs no more than a few drafts from now on.
    void age(DraftClass drafts);
    // Tokens of a round that asks for draft_len drafts.
    double expected_tokens(DraftClass drafts, uint32_t draft_len) const;

  private:
    std::array<double, kDraftClasses> prior_alpha_ = {}, prior_supply_ = {};
    std::array<AcceptanceCounts, kDraftClasses> counts_ = {};
};

// (1 - alpha^(K+1)) / (1 - alpha): Leviathan et al. 2023, equation 1.
double expected_tokens(double alpha, uint32_t draft_len);

} // namespace auspex
