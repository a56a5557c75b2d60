// Maximum likelihood under censoring: tests after the first failure never happened, so alpha = successes / tests.
#include "session/speculation/acceptance_estimator.h"

#include <algorithm>
#include <cmath>

namespace auspex {

namespace {

// What an outcome still weighs after one more draft (round). The discount of a round depends on how many drafts it had,
// never on how many were accepted: an estimate is taken between rounds, where the last test is most often a failure, and
// discounting test by test would count that failure more than the successes before it.
constexpr double kKeepDrafts = 0.96, kKeepRounds = 0.9;
constexpr double kLongRunKeepDrafts = 0.9998, kLongRunKeepRounds = 0.999;
constexpr double kRecentKeepDrafts = 0.985, kRecentKeepRounds = 0.97;
constexpr double kPriorDrafts = 2;        // weight of the long run in a sequence's estimate, in drafts
constexpr double kLongRunPriorDrafts = 6; // weight of the guesses below in the long run
constexpr double kRecentPriorDrafts = 6;  // weight of all texts beside the last ones
constexpr double kKnownDrafts = 32;       // tested drafts that make a long run
constexpr double kAgedDrafts = 4;

// Of pairs nobody measured: related models agree on two tokens of three; a longer match is a better proposal.
constexpr std::array<double, kDraftClasses> kGuessedAlpha = {0.7, 0.3, 0.5, 0.7};
constexpr double kGuessedSupply = 0.9;

uint32_t index_of(DraftClass drafts) { return static_cast<uint32_t>(drafts); }

} // namespace

void AcceptanceCounts::add(uint32_t draft_len, uint32_t accepted_len, double keep_drafts, double keep_rounds) {
    accepted_len = std::min(accepted_len, draft_len);
    const double keep = std::pow(keep_drafts, draft_len);
    accepted = accepted * keep + accepted_len;
    tested = tested * keep + accepted_len + (accepted_len < draft_len ? 1 : 0);
    supplied = supplied * keep_rounds + (draft_len > 0 ? 1 : 0);
    asked = asked * keep_rounds + 1;
}

double LongRun::alpha(DraftClass drafts) const {
    const AcceptanceCounts &all = counts(drafts), &last = recent(drafts);
    const double of_all = (all.accepted + kLongRunPriorDrafts * kGuessedAlpha[index_of(drafts)]) / (all.tested + kLongRunPriorDrafts);
    return (last.accepted + kRecentPriorDrafts * of_all) / (last.tested + kRecentPriorDrafts);
}

double LongRun::supply(DraftClass drafts) const {
    const AcceptanceCounts &all = counts(drafts), &last = recent(drafts);
    const double of_all = (all.supplied + kLongRunPriorDrafts * kGuessedSupply) / (all.asked + kLongRunPriorDrafts);
    return (last.supplied + kRecentPriorDrafts * of_all) / (last.asked + kRecentPriorDrafts);
}

bool LongRun::is_known(DraftClass drafts) const { return counts(drafts).tested >= kKnownDrafts; }

void LongRun::observe(DraftClass drafts, uint32_t draft_len, uint32_t accepted_len) {
    if (drafts == DraftClass::model && draft_len == 0) return; // no room is no news
    counts_[index_of(drafts)].add(draft_len, accepted_len, kLongRunKeepDrafts, kLongRunKeepRounds);
    recent_[index_of(drafts)].add(draft_len, accepted_len, kRecentKeepDrafts, kRecentKeepRounds);
}

AcceptanceEstimator::AcceptanceEstimator(const LongRun& prior) {
    for (uint32_t i = 0; i < kDraftClasses; ++i) {
        prior_alpha_[i] = prior.alpha(static_cast<DraftClass>(i));
        prior_supply_[i] = prior.supply(static_cast<DraftClass>(i));
    }
}

void AcceptanceEstimator::observe(DraftClass drafts, uint32_t draft_len, uint32_t accepted_len) {
    if (drafts == DraftClass::model && draft_len == 0) return;
    counts_[index_of(drafts)].add(draft_len, accepted_len, kKeepDrafts, kKeepRounds);
}

double AcceptanceEstimator::alpha(DraftClass drafts) const {
    const AcceptanceCounts& n = counts_[index_of(drafts)];
    return (n.accepted + kPriorDrafts * prior_alpha_[index_of(drafts)]) / (n.tested + kPriorDrafts);
}

double AcceptanceEstimator::supply(DraftClass drafts) const {
    if (drafts == DraftClass::model) return 1;
    const AcceptanceCounts& n = counts_[index_of(drafts)];
    return (n.supplied + kPriorDrafts * prior_supply_[index_of(drafts)]) / (n.asked + kPriorDrafts);
}

double AcceptanceEstimator::accepted(DraftClass drafts) const { return counts_[index_of(drafts)].accepted; }

double AcceptanceEstimator::evidence(DraftClass drafts) const { return counts_[index_of(drafts)].tested; }

void AcceptanceEstimator::age(DraftClass drafts) {
    AcceptanceCounts& n = counts_[index_of(drafts)];
    if (n.tested <= kAgedDrafts) return;
    n.accepted *= kAgedDrafts / n.tested;
    n.tested = kAgedDrafts;
}

double AcceptanceEstimator::expected_tokens(DraftClass drafts, uint32_t draft_len) const {
    return 1 + supply(drafts) * (auspex::expected_tokens(alpha(drafts), draft_len) - 1);
}

double expected_tokens(double alpha, uint32_t draft_len) {
    double sum = 1, all_accepted = 1;
    for (uint32_t i = 0; i < draft_len; ++i) sum += all_accepted *= alpha;
    return sum;
}

} // namespace auspex
