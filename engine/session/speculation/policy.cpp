// The policy:
//
//  1. A round of shape s gives E tokens (Leviathan et al. 2023, equation 1, per sequence) and takes round_ms(s). Of all
//     shapes the one with the most expected tokens per time is run; the plain round (draft_len 0) is one of them.
//  2. Drafting must promise 3 % more than the plain round to begin and as much as it to go on; another shape must
//     promise 2 % more than the current one. So noise does not flap.
//  3. Promises are not trusted further than an account goes. A sequence is given about 1.5 % of its tokens to lose, the
//     share of its first 128 at once. Every drafting round is charged for what it takes longer than a plain one, before
//     it runs, and credited with the tokens that it won: so draft_len ramps up as drafts are accepted, a useless draft
//     is dropped after a few rounds, and no text can lose more than the account holds, whatever the estimates say. A pair
//     that wins by its last texts opens it with some tokens more; one that does not with none, until savings pay a probe (4).
//  4. A class of drafts that no longer wins pauses, for 8 rounds at first and twice as long every time. Then it is
//     probed with single drafts, and what was known of it counts for little; the probe goes on while they are accepted.
//     Costs that forbid it are doubted now and then, at the price of savings, unless bytes and stages alone say the same.
//     Proposals that a search finds are never probed: in every round, whoever drafts, the first of them is held against the
//     token that came. Single ones that would have won since the last wrong one are worth a little besides the account.
//  5. Rows that the draft model's cache lacks cost a catch-up. It is part of the account's charge until the pair's long
//     run (or this text) is known well; from then on it is an investment, written off over the tokens it serves. Where drafts
//     had to wait for their shaders (7) the first one is no charge either, as long as it is small beside the tokens to come.
//  6. Nothing is drafted before two plain rounds were timed or stored costs were found: ratios need their denominator.
//     Two plain rounds among every 64 or more that draft keep it fresh.
//  7. Only rounds that are ready are chosen: others wait for their shaders. What recording a shape takes is charged to the
//     account, too, in its first two rounds: each of the two in flight has a recording of its own.
//
// Sequences of a group share the round's time: time is counted in tokens that plain rounds of the group would give.
#include "session/speculation/policy.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace auspex {

namespace {

constexpr double kBegin = 1.03, kChange = 1.02;
constexpr double kAllowance = 0.0115, kFirstTokens = 128; // of plain time; noise of costs takes the rest of 1.5 %
constexpr double kMaxAccount = 10;                        // tokens: what a change of the text may cost
constexpr uint32_t kFirstPause = 8, kLongestPause = 256, kProbeRounds = 2;
constexpr uint32_t kGoodRun = 32;        // rounds, after which earlier failures are forgotten
constexpr double kKnownDrafts = 20;      // tested in this text: its own word is enough
constexpr uint32_t kWriteOffTokens = 64; // over which a catch-up is written off, or its own length if that is more
constexpr double kLateCatchUp = 0.03;    // of the tokens to come: what the first one may cost besides, where drafts waited for their shaders
constexpr double kBestAlpha = 0.95;      // that a probe could find
constexpr double kKnownAccount = 5;      // tokens: of a sequence of a pair that usually wins
constexpr double kMaxForetold = 1.5;     // tokens: of two rounds with two proposals each
constexpr double kProbeSavings = 8;      // tokens, besides what catching up and first drafts take
constexpr uint32_t kReferenceAfter = 64, kReferenceRounds = 2;
constexpr uint32_t kRecordings = 2; // of a shape: one for each round in flight
constexpr double kRecordingShare = 0.5; // of an account, that a recording may be charged with at once

uint32_t index_of(DraftClass drafts) { return static_cast<uint32_t>(drafts); }

} // namespace

bool SpeculationPolicy::is_trusted(const SequenceSpeculation& state) const {
    return long_run_.is_known(DraftClass::model) || state.estimator.evidence(DraftClass::model) >= kKnownDrafts;
}

double SpeculationPolicy::catch_up_loss(const SpeculatingSequence& sequence, double token_ms, bool is_probe) const {
    if (!sequence.choice.catch_up || sequence.state->catching_up) return 0;
    if (is_trusted(*sequence.state) && !is_probe) return 0;
    const double loss = costs_.catch_up_ms(sequence.lag_rows) / token_ms;
    return sequence.state->is_late && loss <= std::min(kMaxAccount, kLateCatchUp * sequence.tokens_left) ? 0 : loss;
}

// Drafts grow with those that this text accepted, whatever other texts did: its first round may fail.
uint32_t SpeculationPolicy::longest(const SequenceSpeculation& state, DraftClass drafts) const {
    return (long_run_.is_known(drafts) ? 2 : 1) + static_cast<uint32_t>(std::min<double>(max_draft_len_, state.estimator.accepted(drafts) + 0.5));
}

// The better drafting does, the more a plain round costs and the less its result would change.
bool SpeculationPolicy::reference_is_due() const {
    const double speedup = std::max(1.0, last_speedup_);
    return since_plain_ > kReferenceAfter * speedup || (plain_run_ > 0 && plain_run_ < kReferenceRounds);
}

// What the sequence would do in a round of draft_len drafts, with or without passes of the draft model.
DraftChoice SpeculationPolicy::choice_of(const SpeculatingSequence& sequence, bool model, uint32_t draft_len,
                                         bool is_probe) const {
    const DraftChoice by_model = {DraftSource::model, draft_len, DraftClass::model, !sequence.is_fixed, false};
    const DraftChoice by_proposals = {DraftSource::proposals, draft_len, proposal_class(sequence.match_len), !sequence.is_fixed, false};
    DraftChoice choice;
    if (sequence.is_fixed) {
        const bool proposes = sequence.may_use_proposals && (sequence.match_len > 0 || !sequence.may_use_model);
        if (proposes || sequence.may_use_model) choice = proposes ? by_proposals : by_model;
        choice.draft_len = choice.source == DraftSource::none ? 0 : std::min(sequence.fixed_draft_len, max_draft_len_);
    } else {
        const SequenceSpeculation& state = *sequence.state;
        const auto usable = [&](DraftClass drafts) {
            if (sequence.sees(drafts)) return !is_probe;
            const SequenceSpeculation::Pause& pause = state.pauses[index_of(drafts)];
            return pause.probe_left > 0 || (pause.left == 0 && !(is_probe && pause.run > 0)); // a probe ends
        };
        double most = 1;
        const auto length = [&](DraftClass drafts) { return std::min(draft_len, longest(state, drafts)); };
        const auto consider = [&](const DraftChoice& candidate, bool is_possible) {
            if (!is_possible || !usable(candidate.drafts)) return;
            const double tokens = state.estimator.expected_tokens(candidate.drafts, length(candidate.drafts));
            if (tokens > most) choice = candidate, most = tokens;
        };
        consider(by_proposals, sequence.may_use_proposals && sequence.match_len > 0);
        consider(by_model, sequence.may_use_model && model);
        choice.draft_len = std::min({choice.draft_len, length(choice.drafts), sequence.tokens_left - std::min(sequence.tokens_left, 1u)});
    }
    if (choice.draft_len == 0) return {};
    choice.catch_up = choice.source == DraftSource::model && sequence.lag_rows > 0;
    return choice;
}

SpeculationPolicy::Candidate SpeculationPolicy::evaluate(Group group, const RoundShape& base, bool model, uint32_t draft_len,
                                                         const Candidate* plain, bool is_probe) const {
    Candidate candidate = {.model = model, .draft_len = draft_len, .shape = base};
    for (SpeculatingSequence& sequence : group) {
        sequence.choice = choice_of(sequence, model, draft_len, is_probe);
        if (draft_len > 0) sequence.is_excused = false;
        if (sequence.choice.is_automatic) candidate.n_drafting += 1;
    }
    const double token_ms = costs_.plain_ms(base.batch) / static_cast<double>(group.size());
    for (bool all_afford = false; !all_afford;) { // who cannot afford a share leaves, and shares are made anew
        all_afford = true;
        RoundShape& shape = candidate.shape = base;
        for (const SpeculatingSequence& sequence : group) {
            shape.model |= sequence.choice.source == DraftSource::model;
            shape.proposals |= sequence.choice.source == DraftSource::proposals;
            shape.draft_len = std::max(shape.draft_len, sequence.choice.draft_len);
        }
        candidate.ms = costs_.round_ms(shape);
        if (!plain || candidate.n_drafting == 0) break;
        candidate.recording_ms = is_recorded(shape) ? 0 : costs_.recording_ms();
        const double per_sequence = token_ms * candidate.n_drafting;
        const double share = (candidate.ms - plain->ms) / per_sequence, recording = candidate.recording_ms / per_sequence;
        for (SpeculatingSequence& sequence : group) {
            if (!sequence.choice.is_automatic) continue;
            const double foretold = sequence.choice.source == DraftSource::proposals ? sequence.state->foretold : 0;
            const double account = sequence.state->account;
            if (share + std::min(recording, kRecordingShare * account) + catch_up_loss(sequence, token_ms, is_probe) <= account + foretold) continue;
            sequence.is_excused = sequence.state->estimator.expected_tokens(sequence.choice.drafts, sequence.choice.draft_len) - 1 > share;
            sequence.choice = {};
            candidate.n_drafting -= 1;
            all_afford = false;
        }
    }
    for (const SpeculatingSequence& sequence : group) {
        const DraftChoice& choice = sequence.choice;
        const double expected = sequence.state->estimator.expected_tokens(choice.drafts, choice.draft_len);
        candidate.tokens += expected;
        if (!choice.is_automatic || !choice.catch_up || sequence.state->catching_up) continue;
        const uint32_t served = std::min(sequence.tokens_left, std::max(sequence.lag_rows, kWriteOffTokens));
        candidate.catch_up_ms += costs_.catch_up_ms(sequence.lag_rows) * std::min(1.0, expected / served);
    }
    return candidate;
}

// Of any draft_len up to the longest, by the group's choices; with drafts that are accepted as often as is known, or least_alpha.
double SpeculationPolicy::best_rate(Group group, const Candidate& drafting, uint32_t longest, double least_alpha, const CostModel& costs) const {
    double best = 0;
    for (uint32_t draft_len = 1; draft_len <= longest; ++draft_len) {
        RoundShape shape = drafting.shape;
        shape.draft_len = std::max(shape.draft_len, draft_len);
        double tokens = 0;
        for (const SpeculatingSequence& sequence : group) {
            const DraftChoice& choice = sequence.choice;
            const double known = sequence.state->estimator.expected_tokens(choice.drafts, choice.is_automatic ? draft_len : choice.draft_len);
            tokens += choice.is_automatic ? std::max(known, expected_tokens(least_alpha, draft_len)) : known;
        }
        best = std::max(best, tokens / costs.round_ms(shape));
    }
    return best;
}

bool SpeculationPolicy::could_win(Group group, const Candidate& plain, const Candidate& drafting, const CostModel& costs) const {
    return best_rate(group, drafting, max_draft_len_, kBestAlpha, costs) > kBegin * plain.tokens / costs.round_ms(plain.shape);
}

bool SpeculationPolicy::is_recorded(const RoundShape& shape) const {
    const auto begun = begun_.find(shape);
    return shape.draft_len == 0 || (begun != begun_.end() && begun->second >= kRecordings);
}

SpeculationPolicy::Candidate SpeculationPolicy::choose(Group group, const RoundShape& base, const Candidate& plain, const IsReady& is_ready, bool& is_probe) {
    is_probe = false;
    if (!costs_.is_calibrated()) return plain;
    for (SpeculatingSequence& sequence : group) sequence.is_excused = reference_is_due();
    if (reference_is_due()) return plain;
    // What the others of the group run anyway is compiled for them.
    const auto can_start = [&](const Candidate& candidate) { return candidate.shape == plain.shape || is_ready(candidate.shape.model, candidate.shape.draft_len); };
    Candidate best = plain;
    double best_score = plain.rate() * (last_draft_len_ > 0 ? 1 : kBegin);
    bool awaits_compiling = false;
    for (const bool model : {false, true}) {
        for (uint32_t draft_len = 1; draft_len <= max_draft_len_; ++draft_len) {
            const Candidate candidate = evaluate(group, base, model, draft_len, &plain, false);
            if (candidate.n_drafting == 0) continue;
            const bool is_current = model == last_model_ && draft_len == last_draft_len_;
            const double score = candidate.rate() * (is_current ? kChange : 1) / (begun_.contains(candidate.shape) ? 1 : kChange);
            if (score <= best_score) continue;
            if (!can_start(candidate)) {
                awaits_compiling = true;
                continue;
            }
            best = candidate;
            best_score = score;
        }
    }
    is_probe = best.n_drafting == 0;
    const Candidate drafting = evaluate(group, base, is_probe || best.model, is_probe ? 1 : best.draft_len, &plain, is_probe);
    const auto spends_savings = [](const SpeculatingSequence& sequence) { return sequence.state->spends_savings; };
    if (is_probe) {
        probe_savings_ = kProbeSavings;
        for (const SpeculatingSequence& sequence : group) probe_savings_ += catch_up_loss(sequence, 1 / plain.rate(), is_probe);
    }
    const bool is_saved_for = is_probe &&
                              (long_run_.savings >= probe_savings_ || std::any_of(group.begin(), group.end(), spends_savings)) &&
                              could_win(group, plain, drafting, untaught_);
    const bool wins = drafting.n_drafting > 0 && (!is_probe || is_saved_for || could_win(group, plain, drafting, costs_));
    if (wins && can_start(drafting)) return drafting;
    is_probe = false;
    for (SpeculatingSequence& sequence : group) sequence.state->is_late |= awaits_compiling || wins;
    return plain;
}

bool SpeculationPolicy::usually_wins(const RoundShape& base) const {
    const double plain_ms = costs_.plain_ms(base.batch);
    for (uint32_t draft_len = 1; draft_len <= max_draft_len_; ++draft_len) {
        RoundShape shape = base;
        shape.model = true, shape.draft_len = draft_len;
        if (expected_tokens(long_run_.alpha(DraftClass::model), draft_len) * plain_ms > kBegin * costs_.round_ms(shape)) return true;
    }
    return false;
}

void SpeculationPolicy::earn(SequenceSpeculation& state, uint32_t tokens_left, const RoundShape& base) const {
    const double tokens = state.began ? state.n_tokens : std::min<double>(kFirstTokens, tokens_left);
    if (!state.began) {
        if (!long_run_.is_known(DraftClass::model)) state.account = std::min(kProbeSavings, long_run_.savings);
        else if (usually_wins(base)) state.account = kKnownAccount;
        else if (long_run_.savings >= std::max(kProbeSavings, probe_savings_)) state.account = kProbeSavings;
    }
    state.began = true;
    const double gain = std::max(0.0, kAllowance * tokens - state.allowance);
    state.allowance += gain;
    state.account = std::max(state.account, std::min(state.account + gain, kMaxAccount));
}

void SpeculationPolicy::pause(SpeculatingSequence& sequence, bool is_probe) const {
    const DraftChoice& choice = sequence.choice;
    for (uint32_t i = 0; i < kDraftClasses; ++i) {
        SequenceSpeculation::Pause& pause = sequence.state->pauses[i];
        const auto drafts = static_cast<DraftClass>(i);
        if (sequence.sees(drafts)) continue;
        if (choice.draft_len > 0 && choice.drafts == drafts) {
            if (is_probe && pause.run == 0) {
                pause.probe_left = kProbeRounds;
                sequence.state->estimator.age(drafts);
            }
            pause.probe_left -= std::min(pause.probe_left, 1u);
            if (pause.probe_left == 0) sequence.state->spends_savings = false;
            if (!is_probe) pause.left = 0; // the probe showed that it wins
            if (++pause.run >= kGoodRun && !is_probe) pause.next = 0;
            continue;
        }
        const bool could = sequence.tokens_left > 1 && (drafts == DraftClass::model ? choice.draft_len == 0 && sequence.may_use_model
                                                           : sequence.match_len > 0 && proposal_class(sequence.match_len) == drafts);
        if (could && pause.run > 0 && !sequence.is_excused) { // it no longer wins
            pause.left = pause.next = std::clamp(pause.next * 2, kFirstPause, kLongestPause);
            pause.run = 0;
        } else if (pause.left > 0) {
            pause.left -= 1;
        }
    }
}

void SpeculationPolicy::commit(Group group, const Candidate& chosen, const Candidate& plain, bool is_probe) {
    const double plain_ms = costs_.plain_ms(chosen.shape.batch);
    const double token_ms = plain_ms / static_cast<double>(group.size());
    for (SpeculatingSequence& sequence : group) {
        SequenceSpeculation& state = *sequence.state;
        const DraftChoice& choice = sequence.choice;
        if (is_probe && choice.is_automatic && long_run_.savings >= probe_savings_) {
            long_run_.savings = 0;
            state.spends_savings = true;
        }
        const double loss = choice.catch_up && choice.is_automatic ? catch_up_loss(sequence, token_ms, is_probe) : 0;
        state.is_late = choice.draft_len == 0 && state.is_late;
        if (choice.catch_up) { // no round yet
            state.account -= loss;
            long_run_.savings = std::max(0.0, long_run_.savings - loss);
            if (!state.catching_up) state.predicted_plain_tokens += costs_.catch_up_ms(sequence.lag_rows) / plain_ms;
            state.catching_up = true;
            continue;
        }
        state.catching_up = false;
        if (choice.is_automatic) {
            const double recording = chosen.recording_ms / token_ms / chosen.n_drafting;
            state.charge = (chosen.ms - plain.ms) / token_ms / chosen.n_drafting;
            state.account -= state.charge + std::min(recording, std::max(0.0, kRecordingShare * state.account));
        }
        if (!sequence.is_fixed) pause(sequence, is_probe);
        const auto source = static_cast<uint32_t>(choice.source);
        state.rounds[source] += 1;
        state.draft_lens[source] += choice.draft_len;
        state.predicted_tokens += state.estimator.expected_tokens(choice.drafts, choice.draft_len);
        state.predicted_plain_tokens += chosen.ms / plain_ms;
    }
}

RoundPlan SpeculationPolicy::decide(Group group, uint32_t batch, bool transforms, const IsReady& is_ready) {
    RoundPlan plan = {.shape = {.batch = batch, .transforms = transforms}};
    if (group.empty()) return plan;
    for (SpeculatingSequence& sequence : group)
        if (!sequence.is_fixed) earn(*sequence.state, sequence.tokens_left, plan.shape);
    const Candidate plain = evaluate(group, plan.shape, false, 0, nullptr, false);
    const Candidate best = choose(group, plan.shape, plain, is_ready, plan.is_probe);
    const Candidate chosen = evaluate(group, plan.shape, best.model, best.draft_len, best.n_drafting > 0 ? &plain : nullptr, plan.is_probe);
    commit(group, chosen, plain, plan.is_probe);
    if (!plan.is_probe) {
        last_model_ = chosen.model;
        last_draft_len_ = chosen.n_drafting > 0 ? chosen.draft_len : 0;
        if (chosen.n_drafting > 0) last_speedup_ = chosen.rate() / plain.rate();
    }
    if (chosen.shape.draft_len > 0) begun_[chosen.shape] += 1;
    plain_run_ = chosen.shape.draft_len > 0 ? 0 : plain_run_ + 1;
    since_plain_ = plain_run_ >= kReferenceRounds ? 0 : since_plain_ + 1;
    for (SpeculatingSequence& sequence : group) {
        if (sequence.is_searched) sequence.choice.match_len = sequence.match_len;
        if (sequence.choice.catch_up) continue;
        plan.shape.model |= sequence.choice.source == DraftSource::model;
        plan.shape.proposals |= sequence.choice.source == DraftSource::proposals;
        plan.shape.draft_len = std::max(plan.shape.draft_len, sequence.choice.draft_len);
    }
    plan.predicted_ms = costs_.round_ms(plan.shape);
    plan.predicted_tokens = chosen.tokens;
    return plan;
}

void SpeculationPolicy::observe(SequenceSpeculation& state, const DraftChoice& choice, uint32_t draft_len, uint32_t accepted_len, Foretold foretold) {
    state.n_tokens += accepted_len + 1;
    if (choice.draft_len == 0 && state.began && state.estimator.evidence(DraftClass::model) == 0)
        long_run_.savings = std::max(long_run_.savings, std::min(probe_savings_, long_run_.savings + kAllowance));
    if (choice.match_len > 0 && choice.source != DraftSource::proposals) { // a draft that costs nothing
        const uint32_t n_proposed = foretold == Foretold::nothing ? 0 : 1, n_right = foretold == Foretold::right ? 1 : 0;
        state.estimator.observe(proposal_class(choice.match_len), n_proposed, n_right);
        long_run_.observe(proposal_class(choice.match_len), n_proposed, n_right);
        if (foretold == Foretold::right) state.foretold = std::min(kMaxForetold, state.foretold + std::max(0.0, 2 - costs_.v(2)));
        if (foretold == Foretold::wrong) state.foretold = 0;
    }
    if (choice.draft_len == 0 || choice.catch_up) return;
    state.estimator.observe(choice.drafts, draft_len, accepted_len);
    long_run_.observe(choice.drafts, draft_len, accepted_len);
    if (choice.source == DraftSource::proposals && draft_len > 0 && accepted_len == 0) state.foretold = 0;
    if (!choice.is_automatic) return;
    // Two rounds are charged before the first is read.
    state.account = std::min(state.account + accepted_len, std::max(kMaxAccount, 3 * state.charge));
    SequenceSpeculation::Pause& pause = state.pauses[index_of(choice.drafts)];
    if (accepted_len > 0 && pause.next > 0) pause.probe_left = std::max(pause.probe_left, 1u); // the probe goes on
}

SpeculationPolicy::Summary SpeculationPolicy::summary(const SequenceSpeculation& state) const {
    Summary summary;
    if (state.predicted_plain_tokens > 0) summary.predicted_speedup = state.predicted_tokens / state.predicted_plain_tokens;
    const auto source = static_cast<size_t>(std::max_element(state.rounds.begin(), state.rounds.end()) - state.rounds.begin());
    const AcceptanceEstimator& estimator = state.estimator;
    const double alpha = estimator.alpha(DraftClass::model);
    char text[200] = "";
    const auto say = [&](const char* format, auto... values) { std::snprintf(text, sizeof text, format, values...); };
    if (source == static_cast<size_t>(DraftSource::none)) {
        const double needed = costs_.c() + costs_.v(2) - 1; // of one draft: what it costs more than it can give
        if (needed >= kBestAlpha) say("plain: a draft costs too much (c %.2f, v(2) %.2f)", costs_.c(), costs_.v(2));
        else if (state.is_late) say("%s", "plain: the shaders of drafts were not compiled yet");
        else if (estimator.evidence(DraftClass::model) > 0 && alpha < needed) say("plain: drafts accepted too rarely (α %.2f)", alpha);
        else if (estimator.evidence(DraftClass::model) > 0) say("plain: drafts did not pay (α %.2f, c %.2f, v(2) %.2f)", alpha, costs_.c(), costs_.v(2));
        else say("%s", "plain: no draft was worth a try");
    } else {
        const auto k = static_cast<unsigned>((state.draft_lens[source] + state.rounds[source] / 2) / state.rounds[source]);
        if (source == static_cast<size_t>(DraftSource::model))
            say("model drafts, K %u: α %.2f, c %.2f, v(%u) %.2f → %.2fx expected", k, alpha, costs_.c(), k + 1, costs_.v(k + 1), summary.predicted_speedup);
        else say("text proposes, K %u: v(%u) %.2f → %.2fx expected", k, k + 1, costs_.v(k + 1), summary.predicted_speedup);
    }
    summary.reason = text;
    return summary;
}

} // namespace auspex
