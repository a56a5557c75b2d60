// The host's side of accept: one line to record it, a few to read it.
#include "accept/acceptance.h"

#include <algorithm>

namespace auspex {

static_assert(gpu::kMaxDraftLen == kMaxDraft && gpu::kMaxPath == kMaxDraft + 1);
static_assert(gpu::kDrafterNone == static_cast<uint32_t>(Drafter::none) && gpu::kDrafterHost == static_cast<uint32_t>(Drafter::host));
static_assert(gpu::kForetoldNothing == static_cast<uint32_t>(Foretold::nothing) && gpu::kForetoldRight == static_cast<uint32_t>(Foretold::right));
static_assert(gpu::kAcceptCoupled == static_cast<uint32_t>(AcceptanceRule::coupled) && gpu::kAcceptSimulated == static_cast<uint32_t>(AcceptanceRule::simulated));

void record_acceptance(Recorder& to, const AcceptBuffers& buffers, const AcceptShape& shape) {
    record_accept(to, buffers, shape);
}

Outcome read_outcome(const gpu::RoundRecord& record) {
    Outcome outcome;
    outcome.start = record.start;
    outcome.draft_len = std::min(record.draft_len, kMaxDraft);
    outcome.accepted_len = std::min(record.accepted_len, outcome.draft_len);
    outcome.draft_cache_len = record.draft_cache_len;
    outcome.stop = static_cast<StopReason>(record.stop_reason);
    outcome.drafter = static_cast<Drafter>(std::min(record.drafter, gpu::kDrafterHost));
    outcome.overlap = record.overlap;
    outcome.not_finite = record.not_finite;
    outcome.match_len = record.match_len;
    outcome.foretold = static_cast<Foretold>(std::min(record.foretold, gpu::kForetoldRight));
    outcome.n_tokens = std::min(record.n_tokens, outcome.accepted_len + 1);
    std::copy_n(record.tokens, outcome.n_tokens, outcome.tokens.begin());
    return outcome;
}

} // namespace auspex
