// Adapts sequences to the policy, which knows only numbers.
#include "session/round_planner.h"

#include <algorithm>

namespace auspex {

namespace {

constexpr uint32_t kHybridMatch = 3; // tokens of context from which on an n-gram's drafts are preferred to the model's

bool is_chosen_freely(const SequenceRequest& request) { return request.draft_len == kAutoDraftLen; }

bool is_simulated(const SequenceRequest& request) { return request.sampling.acceptance == AcceptanceRule::simulated; }

template <typename List, typename Of> double mean_of(const List& list, Of of) {
    double sum = 0;
    for (const auto& one : list) sum += of(one);
    return list.empty() ? 0 : sum / static_cast<double>(list.size());
}

RoundShape shape_of(const RoundForm& form, bool proposals) {
    return {.model = form.model_drafts, .proposals = proposals, .draft_len = form.draft_len, .batch = form.batch, .transforms = form.edits_logits || form.truncation.any()};
}

} // namespace

bool RoundPlanner::plan(std::span<const Entry> entries, uint32_t batch, const SpeculationPolicy::IsReady& is_ready) {
    std::vector<SpeculatingSequence> group;
    bool transforms = false;
    for (const Entry& entry : entries) {
        LiveSequence& sequence = *entry.sequence;
        const SequenceRequest& request = sequence.request;
        if (!sequence.speculation) sequence.speculation.emplace(is_simulated(request) ? coins_ : long_run_);
        transforms |= request.sampling.edits_logits() || request.sampling.truncates();
        const bool is_fixed = !is_chosen_freely(request);
        // A fixed draft_len promises its seed's text again, so the round before may not count although it was read in time.
        const bool is_before = is_fixed && sequence.unread_rounds == 0 && sequence.stats.rounds > 0;
        uint32_t match_len = is_before ? sequence.match_len_before : sequence.match_len;
        const bool has_draft = (is_before ? sequence.target_len_before : sequence.target_len) < draft_context_; // rows.comp ends it where it must end
        const uint32_t long_match = std::min(kHybridMatch, request.ngram_max - 1); // no context is longer
        if (request.who().wants_long_matches && match_len < long_match && has_draft) match_len = 0;
        if (request.asks()) match_len = 1; // it is asked each time
        group.push_back({.state = &*sequence.speculation,
                         .may_use_model = has_draft && sequence.may_use_model(),
                         .may_use_proposals = request.may_use_proposals() && match_len > 0,
                         .is_fixed = is_fixed,
                         .fixed_draft_len = std::min(request.draft_len, max_draft_len_),
                         .lag_rows = entry.lag_rows,
                         .match_len = match_len,
                         .is_searched = request.searches(),
                         .tokens_left = entry.tokens_left,
                         .choice = {}});
    }
    costs_.set_text_len(mean_of(entries, [](const Entry& entry) { return entry.sequence->target_len; }));
    const bool by_coins = std::any_of(entries.begin(), entries.end(), [](const Entry& entry) { return is_simulated(entry.sequence->request); });
    const RoundPlan planned = (by_coins ? coin_policy_ : policy_).decide(group, batch, transforms, is_ready);
    for (size_t i = 0; i < entries.size(); ++i) {
        LiveSequence& sequence = *entries[i].sequence;
        sequence.choice = group[i].choice;
        sequence.draft_len = sequence.choice.draft_len;
        const DrafterChoiceRow& who = sequence.request.who();
        sequence.drafter = sequence.choice.source == DraftSource::none ? Drafter::none : sequence.choice.source == DraftSource::model ? who.by_pass : who.proposer;
    }
    return planned.searches;
}

void RoundPlanner::observe_times(const Turn& turn, double wall_ms, bool is_steady) {
    const bool proposals = std::any_of(turn.entries.begin(), turn.entries.end(), [](const TurnEntry& entry) { return entry.choice.source == DraftSource::proposals; });
    costs_.observe(shape_of(turn.key.round, proposals), {.draft_ms = turn.draft_ms,
                                                         .verify_ms = turn.verify_ms,
                                                         .accept_ms = turn.accept_ms,
                                                         .wall_ms = wall_ms,
                                                         .recording_ms = turn.recording_ms,
                                                         .text_len = mean_of(turn.entries, [](const TurnEntry& entry) { return entry.text_len; }),
                                                         .is_steady = is_steady});
}

RoundPlanner::Predicted RoundPlanner::predict(const RoundForm& form) const {
    const RoundShape shape = shape_of(form, form.draft_len > 0 && !form.model_drafts);
    return {costs_.round_ms(shape), costs_.plain_ms(1) * costs_.v(shape.rows())};
}

double RoundPlanner::replay_ms(TurnKind kind, uint32_t n_rows) const {
    const auto pace = paces_.find(kind);
    if (const double ms = pace == paces_.end() ? -1 : pace->second.ms(n_rows); ms >= 0) return ms;
    return is_of_target(kind) ? pass_ms(n_rows) : costs_.catch_up_ms(n_rows);
}

void RoundPlanner::observe_replay(const Turn& turn) {
    const TurnKind kind = turn.key.kind;
    if (kind == TurnKind::prompt_catch_up || kind == TurnKind::answer_catch_up) costs_.observe_catch_up(turn.key.rows, turn.replay_ms, turn.recording_ms);
    if (kind == TurnKind::prefill && turn.replay_ms >= 0) costs_.observe_prompt(turn.key.rows, turn.replay_ms);
    if ((kind == TurnKind::prefill || kind == TurnKind::prompt_catch_up) && turn.replay_ms >= 0) paces_[kind].observe(turn.key.rows, turn.replay_ms);
}

void RoundPlanner::observe_outcome(LiveSequence& sequence, const DraftChoice& choice, const Outcome& outcome) {
    if (!sequence.speculation || sequence.stop != StopReason::none) return; // a stop may have cut the round short
    SpeculationPolicy& policy = is_simulated(sequence.request) ? coin_policy_ : policy_;
    policy.observe(*sequence.speculation, choice, outcome.draft_len, outcome.accepted_len, outcome.foretold);
}

RoundPlanner::Report RoundPlanner::report(const LiveSequence& sequence) const {
    Report report;
    if (draft_context_ > 0) report.c = costs_.c();
    if (sequence.stats.rounds > 0) report.v = costs_.v(1 + sequence.stats.draft_n / sequence.stats.rounds);
    if (!sequence.speculation || !is_chosen_freely(sequence.request)) return report;
    const SpeculationSummary summary = summary_of(*sequence.speculation, costs_, sequence.request.drafters->of(sequence.request.who().by_pass).name);
    report.predicted_speedup = summary.predicted_speedup;
    report.choice = summary.reason;
    return report;
}

} // namespace auspex
