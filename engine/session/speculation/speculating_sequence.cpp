// What one sequence would draft in a round, and what is said of it in the end.
#include "session/speculation/speculating_sequence.h"

#include "session/speculation/best_shape.h"
#include "session/speculation/cost_model.h"

#include <algorithm>
#include <cstdio>

namespace auspex {

namespace {

DraftChoice fixed_choice(const SpeculatingSequence& sequence, const DraftChoice& by_model, const DraftChoice& by_proposals, uint32_t max_draft_len) {
    const bool proposes = sequence.may_use_proposals && (sequence.match_len > 0 || !sequence.may_use_model);
    DraftChoice choice;
    if (proposes || sequence.may_use_model) choice = proposes ? by_proposals : by_model;
    choice.draft_len = choice.source == DraftSource::none ? 0 : std::min(sequence.fixed_draft_len, max_draft_len);
    return choice;
}

} // namespace

DraftChoice SpeculatingSequence::choice_in(const AskedRound& asked, const LongRun& long_run, uint32_t max_draft_len) const {
    const DraftChoice by_model = {DraftSource::model, asked.draft_len, DraftClass::model, !is_fixed};
    const DraftChoice by_proposals = {DraftSource::proposals, asked.draft_len, proposal_class(match_len), !is_fixed};
    DraftChoice best;
    if (is_fixed) {
        best = fixed_choice(*this, by_model, by_proposals, max_draft_len);
    } else {
        // Drafts grow with those that this text accepted, whatever other texts did: its first round may fail.
        const auto length = [&](DraftClass drafts) {
            const auto accepted = static_cast<uint32_t>(std::min<double>(max_draft_len, state->estimator.accepted(drafts) + 0.5));
            return std::min(asked.draft_len, accepted + (long_run.is_known(drafts) ? 2 : 1));
        };
        double most = 1;
        const auto consider = [&](const DraftChoice& one, bool is_possible) {
            if (!is_possible || !(sees(one.drafts) ? !asked.is_probe : state->probation.allows(one.drafts, asked.is_probe))) return;
            const double tokens = state->estimator.expected_tokens(one.drafts, length(one.drafts));
            if (tokens > most) best = one, most = tokens;
        };
        consider(by_proposals, may_use_proposals && match_len > 0);
        consider(by_model, may_use_model && asked.model);
        best.draft_len = std::min({best.draft_len, length(best.drafts), tokens_left - std::min(tokens_left, 1u)});
    }
    if (best.draft_len == 0) return {};
    best.catch_up = best.source == DraftSource::model && lag_rows > 0;
    return best;
}

void SpeculatingSequence::begin_round(bool is_probe, double plain_tokens) {
    for (uint32_t i = 0; i < kDraftClasses && !is_fixed; ++i) {
        const auto drafts = static_cast<DraftClass>(i);
        if (sees(drafts)) continue;
        if (choice.draft_len > 0 && choice.drafts == drafts) {
            if (state->probation.drafts(drafts, is_probe)) state->estimator.age(drafts);
            if (!state->probation.is_probing(drafts)) state->spends_savings = false;
            continue;
        }
        const bool could = tokens_left > 1 && (drafts == DraftClass::model ? choice.draft_len == 0 && may_use_model
                                                                           : match_len > 0 && proposal_class(match_len) == drafts);
        state->probation.rests(drafts, could && !is_excused);
    }
    const auto source = static_cast<uint32_t>(choice.source);
    state->rounds[source] += 1;
    state->draft_lens[source] += choice.draft_len;
    state->predicted_tokens += expected_tokens();
    state->predicted_plain_tokens += plain_tokens;
}

SpeculationSummary summary_of(const SequenceSpeculation& state, const CostModel& costs, const char* by_pass) {
    SpeculationSummary summary;
    if (state.predicted_plain_tokens > 0) summary.predicted_speedup = state.predicted_tokens / state.predicted_plain_tokens;
    const auto source = static_cast<size_t>(std::max_element(state.rounds.begin(), state.rounds.end()) - state.rounds.begin());
    const AcceptanceEstimator& estimator = state.estimator;
    const double alpha = estimator.alpha(DraftClass::model);
    char text[200] = "";
    const auto say = [&](const char* format, auto... values) { std::snprintf(text, sizeof text, format, values...); };
    if (source == static_cast<size_t>(DraftSource::none)) {
        const double needed = costs.c() + costs.v(2) - 1; // of one draft: what it costs more than it can give
        if (needed >= kBestAlpha) say("plain: a draft costs too much (c %.2f, v(2) %.2f)", costs.c(), costs.v(2));
        else if (state.is_late) say("%s", "plain: the shaders of drafts were not compiled yet");
        else if (estimator.evidence(DraftClass::model) > 0 && alpha < needed) say("plain: drafts accepted too rarely (α %.2f)", alpha);
        else if (estimator.evidence(DraftClass::model) > 0) say("plain: drafts did not pay (α %.2f, c %.2f, v(2) %.2f)", alpha, costs.c(), costs.v(2));
        else say("%s", "plain: no draft was worth a try");
    } else {
        const auto k = static_cast<unsigned>((state.draft_lens[source] + state.rounds[source] / 2) / state.rounds[source]);
        if (source == static_cast<size_t>(DraftSource::model))
            say("%s drafts, K %u: α %.2f, c %.2f, v(%u) %.2f → %.2fx expected", by_pass, k, alpha, costs.c(), k + 1, costs.v(k + 1), summary.predicted_speedup);
        else say("text proposes, K %u: v(%u) %.2f → %.2fx expected", k, k + 1, costs.v(k + 1), summary.predicted_speedup);
    }
    summary.reason = text;
    return summary;
}

} // namespace auspex
