// Turns differ between sequences by few things, all of them in RoundForm.
#include "session/turns/turn_forms.h"

#include <algorithm>

namespace auspex {

RoundForm empty_round() { return {.logits_use = LogitsUse::largest}; }

void add_to_round(RoundForm& form, const SequenceRequest& request) {
    const SamplingParams& sampling = request.sampling;
    form.searches |= request.searches();
    form.edits_logits |= sampling.edits_logits();
    form.logprobs |= request.with_logprobs != 0;
    form.logits_use = std::max(form.logits_use, sampling.logits_use());
    form.truncation.top_k |= sampling.truncates() && sampling.top_k > 0;
    form.truncation.top_p |= sampling.truncates() && sampling.top_p < 1;
    form.truncation.min_p |= sampling.truncates() && sampling.min_p > 0;
}

void join_sampling(RoundForm& form, const RoundForm& other) {
    form.searches |= other.searches;
    form.edits_logits |= other.edits_logits;
    form.logprobs |= other.logprobs;
    form.logits_use = std::max(form.logits_use, other.logits_use);
    form.truncation.top_k |= other.truncation.top_k;
    form.truncation.top_p |= other.truncation.top_p;
    form.truncation.min_p |= other.truncation.min_p;
}

RoundForm without_search(RoundForm form) {
    form.searches = false;
    return form;
}

std::vector<TurnKey> catch_up_turns(const TurnLimits& limits) {
    if (!limits.has_draft_cache) return {};
    std::vector<TurnKey> turns = {{.kind = TurnKind::answer_catch_up, .rows = catch_up_rows(limits.max_replay_rows)}};
    for (uint32_t rows = 0, bucket = 0; rows < limits.max_replay_rows; rows = bucket) {
        bucket = row_bucket(rows + 1, limits.max_replay_rows);
        turns.push_back({.kind = TurnKind::prompt_catch_up, .rows = bucket});
    }
    return turns;
}

std::vector<TurnKey> turns_of(const SequenceRequest& request, const TurnLimits& limits) {
    const bool by_model = limits.has_draft && request.may_use_model();
    const bool by_others = request.may_use_proposals();
    const uint32_t max_draft_len = by_model || by_others ? std::min(request.draft_len, limits.max_draft_len) : 0;
    std::vector<TurnKey> turns = {{.kind = TurnKind::copy}};
    for (uint32_t rows = 0, bucket = 0; rows < limits.max_replay_rows; rows = bucket) {
        bucket = row_bucket(rows + 1, limits.max_replay_rows);
        turns.push_back({.kind = TurnKind::prefill, .rows = bucket});
    }
    if (limits.may_run_short) turns.push_back({.kind = TurnKind::answer_prefill, .rows = catch_up_rows(limits.max_replay_rows)});
    if (by_model)
        for (const TurnKey& key : catch_up_turns(limits)) turns.push_back(key);
    RoundForm form = empty_round();
    add_to_round(form, request);
    for (form.batch = 1; form.batch <= limits.max_batch; form.batch *= 2)
        for (form.draft_len = 0; form.draft_len <= max_draft_len; ++form.draft_len)
            for (bool model_drafts : {false, true}) {
                if (form.draft_len == 0 ? model_drafts : !(model_drafts ? by_model : by_others)) continue;
                form.model_drafts = model_drafts;
                turns.push_back({.kind = TurnKind::round, .round = form});
                if (form.draft_len == 0 && form.batch > 1 && form.searches && request.draft_len == kAutoDraftLen) turns.push_back({.kind = TurnKind::round, .round = without_search(form)});
            }
    return turns;
}

} // namespace auspex
