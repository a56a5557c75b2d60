// Compares rounds.
#include "session/speculation/best_shape.h"

#include <algorithm>

namespace auspex {

namespace {

constexpr double kBegin = 1.03, kChange = 1.02;
constexpr uint32_t kRecordings = 2; // of a shape: one for each round in flight
constexpr uint32_t kReferenceAfter = 64, kReferenceRounds = 2;

} // namespace

bool is_worth_beginning(double rate, double plain_rate) { return rate > kBegin * plain_rate; }

double BestShape::score(const Candidate& candidate) const {
    if (candidate.draft_len == 0) return candidate.rate() * (last_draft_len_ > 0 ? 1 : kBegin);
    const bool is_current = candidate.model == last_model_ && candidate.draft_len == last_draft_len_;
    return candidate.rate() * (is_current ? kChange : 1) / (begun_.contains(candidate.shape) ? 1 : kChange);
}

BestShape::Found BestShape::find(const Candidate& plain, uint32_t max_draft_len, const Evaluate& evaluate, const CanStart& can_start) const {
    Found found = {plain};
    double best_score = score(plain);
    for (const bool model : {false, true}) {
        for (uint32_t draft_len = 1; draft_len <= max_draft_len; ++draft_len) {
            const Candidate candidate = evaluate(model, draft_len);
            if (candidate.n_drafting == 0 || score(candidate) <= best_score) continue;
            if (!can_start(candidate)) {
                found.waits = true;
                continue;
            }
            found.best = candidate;
            best_score = score(candidate);
        }
    }
    return found;
}

void BestShape::begin(const Candidate& chosen, bool is_probe) {
    if (!is_probe) {
        last_model_ = chosen.model;
        last_draft_len_ = chosen.n_drafting > 0 ? chosen.draft_len : 0;
    }
    if (chosen.shape.draft_len > 0) begun_[chosen.shape] += 1;
}

bool BestShape::is_recorded(const RoundShape& shape) const {
    const auto begun = begun_.find(shape);
    return shape.draft_len == 0 || (begun != begun_.end() && begun->second >= kRecordings);
}

// The better drafting does, the more a plain round costs and the less its result would change.
bool PlainReference::is_due() const {
    const double speedup = std::max(1.0, last_speedup_);
    return since_plain_ > kReferenceAfter * speedup || (plain_run_ > 0 && plain_run_ < kReferenceRounds);
}

void PlainReference::begin(const RoundShape& shape) {
    plain_run_ = shape.draft_len > 0 ? 0 : plain_run_ + 1;
    since_plain_ = plain_run_ >= kReferenceRounds ? 0 : since_plain_ + 1;
}

} // namespace auspex
