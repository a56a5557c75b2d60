// The host's side of accept: what is recorded, and how its outcome reads.
#include "accept/acceptance.h"

#include "shared/propose_args.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace auspex {

static_assert(gpu::kMaxDraftLen == kMaxDraft && gpu::kMaxPath == kMaxDraft + 1 && gpu::kMaxLogprobs == kMostLogprobs);
static_assert(gpu::kForetoldNothing == static_cast<uint32_t>(Foretold::nothing) && gpu::kForetoldRight == static_cast<uint32_t>(Foretold::right));
static_assert(gpu::kAcceptCoupled == static_cast<uint32_t>(AcceptanceRule::coupled) && gpu::kAcceptSimulated == static_cast<uint32_t>(AcceptanceRule::simulated));

void record_accept(Recorder& to, const AcceptBuffers& buffers, const AcceptShape& shape) {
    record_accept_test(to, buffers, shape);
    to.cmd.barrier();
    if (shape.races) {
        record_accept_race(to, buffers, shape);
        to.cmd.barrier();
    }
    record_accept_commit(to, buffers, shape);
}

void record_acceptance(Recorder& to, const RoundPass& round) {
    const RoundBuffers& b = round.buffers;
    const RoundForm& form = round.form;
    record_accept(to,
                  {.target_logits = b.target_logits.view(), .draft_logits = b.draft_logits.view(), .target_choices = b.target_choices.view(),
                   .draft_choices = b.draft_choices.view(), .state = b.state.view(), .history = b.history.view(), .round_slots = b.round_slots.view(),
                   .target_rows = b.target_rows.view(), .plans = b.plans.view(), .race_partials = b.race_partials.view(),
                   .records = round.turn.records.view(), .counts = b.counts.view(), .index = b.index.view()},
                  {.batch = form.batch,
                   .draft_len = form.draft_len,
                   .vocab = round.models.target.config().vocab_size,
                   .draft_vocab = round.models.draft ? round.models.draft->config().vocab_size : 0,
                   .history_stride = b.history_stride,
                   .races = form.logits_use == LogitsUse::all,
                   .index_words = form.searches ? gpu::index_words_for(b.history_stride) : 0});
    if (!form.logprobs) return;
    to.cmd.barrier();
    record_logprobs_chosen(to, round.logprob_buffers(),
                           {.batch = form.batch,
                            .draft_len = form.draft_len,
                            .vocab = round.models.target.config().vocab_size,
                            .history_stride = b.history_stride,
                            .edited = form.edits_logits});
}

Outcome read_outcome(const gpu::RoundRecord& record) {
    Outcome outcome;
    outcome.start = record.start;
    outcome.draft_len = std::min(record.draft_len, kMaxDraft);
    outcome.accepted_len = std::min(record.accepted_len, outcome.draft_len);
    outcome.draft_cache_len = record.draft_cache_len;
    outcome.stop = static_cast<StopReason>(record.stop_reason);
    outcome.drafter = static_cast<Drafter>(std::min(record.drafter, kMostDrafters - 1));
    outcome.overlap = record.overlap;
    outcome.not_finite = record.not_finite;
    outcome.match_len = record.match_len;
    outcome.proposed.assign(record.proposed, record.proposed + std::min(record.n_proposed, kMaxDraft));
    outcome.foretold = static_cast<Foretold>(std::min(record.foretold, gpu::kForetoldRight));
    outcome.n_tokens = std::min(record.n_tokens, outcome.accepted_len + 1);
    std::copy_n(record.tokens, outcome.n_tokens, outcome.tokens.begin());
    return outcome;
}

TokenLogprobs read_logprobs(const gpu::LogprobRow& row, uint32_t n_best) {
    const bool has_distribution = std::isfinite(row.max) && row.max > std::numeric_limits<float>::lowest();
    const double log_sum = std::log(static_cast<double>(row.sum)), largest = row.max;
    auto logprob_of = [&](uint32_t id, float logit) -> TokenLogprob {
        if (!has_distribution) return {id, std::numeric_limits<float>::quiet_NaN()};
        const double logprob = static_cast<double>(logit) - largest - log_sum;
        return {id, logprob < std::numeric_limits<float>::lowest() ? -std::numeric_limits<float>::infinity() : static_cast<float>(logprob)};
    };
    TokenLogprobs read = {.token = logprob_of(row.token, row.logit)};
    for (uint32_t i = 0; i < n_best && row.best_ids[i] != gpu::kNoToken; ++i) read.best[read.n_best++] = logprob_of(row.best_ids[i], row.best_logits[i]);
    return read;
}

} // namespace auspex
