// The policy, rule by rule:
//
//  1. best_shape: the round with the most expected tokens per time is run (Leviathan et al. 2023, equation 1, per sequence); the
//     plain round is one of them.
//  2. best_shape: drafting must promise 3 % more than the plain round to begin and as much as it to go on; another shape must
//     promise 2 % more than the current one. So noise does not make rounds change to and fro.
//  3. account: promises are trusted as far as an account goes, about 1.5 % of a text's tokens. Every round with drafts pays what it
//     takes longer than a plain one before it runs, and is credited with the tokens that it won. So draft_len grows as drafts are
//     accepted (at most one more than this text accepts, or two if the pair is known: speculating_sequence), and no text loses more
//     than its account, whatever the estimates say. If recent texts of this pair won, the account
//     opens with 5 tokens; if nobody knows the pair, with 0.75, so that its drafts do not end before one was read; otherwise with
//     none, until savings can pay for a probe.
//  4. probation: a class of drafts that no longer wins pauses, for 8 rounds at first and twice as long every time. Then single
//     drafts probe it, as long as they are accepted. If measured costs forbid it but bytes and stages do not, savings pay for a
//     probe now and then. Proposals that a search finds need no probe: in every round the first one is compared with the token that
//     came. What single ones would have won since the last wrong one is added to the account, for proposals, up to 1.5 tokens.
//  5. account: rows that the draft model's cache lacks cost a catch-up. The account pays it until the pair's long run, or this
//     text, is known well; from then on it is an investment, written off over the tokens that it serves. Before any draft of the
//     pair was read, and where drafts had to wait for their shaders (7), it is no charge either, as long as it is small beside the
//     tokens to come: so a pair is tried in the first text that is long enough, and where it failed not for nothing again. How
//     small it is the target told, which has read the same prompt: bytes and stages err by several times.
//  6. Nothing is drafted before the cost model is calibrated: by two plain rounds, or more of any kind, or stored costs. best_shape: two
//     plain rounds among every 64 or more that draft keep it fresh.
//  7. Only rounds that are ready are chosen; others wait for their shaders. The account pays for recording a shape in its first two
//     rounds, because each of the two in flight has a recording of its own.
//  8. In company one's drafts and catch-ups take the time of all, and who takes part changes all the time: there are no probes, and
//     drafts by the model begin when eight plans in a row promised them. They end as soon as a plan does not. Where not even
//     proposals that are nearly always right could win, nobody searches for any: then the round is what it is without drafters.
//
// Sequences of a group share the round's time: time is counted in tokens that plain rounds of the group would give.
#include "session/speculation/policy.h"

#include "session/speculation/prospects.h"

#include <algorithm>

namespace auspex {

namespace {

constexpr double kEnoughDrafts = 20; // tested in this text: its own word is enough
constexpr uint32_t kCompanyPlans = 8; // in a row
constexpr double kKnownAccount = 5; // tokens: of a sequence of a pair that usually wins
constexpr double kUnknownAccount = 0.75; // tokens: of a pair that nobody knows, so that its first drafts do not end before one of them was read

RoundShape shape_of(std::span<const SpeculatingSequence> group, RoundShape shape, bool with_catching_up) {
    for (const SpeculatingSequence& sequence : group) {
        if (sequence.choice.catch_up && !with_catching_up) continue;
        shape.model |= sequence.choice.source == DraftSource::model;
        shape.proposals |= sequence.choice.source == DraftSource::proposals;
        shape.draft_len = std::max(shape.draft_len, sequence.choice.draft_len);
    }
    return shape;
}

} // namespace

double SpeculationPolicy::catch_up_loss(const SpeculatingSequence& sequence, double token_ms, bool is_probe) const {
    const SequenceSpeculation& state = *sequence.state;
    if (!sequence.choice.catch_up || state.catching_up) return 0;
    const bool is_trusted = !is_probe && (long_run_.is_known(DraftClass::model) || state.estimator.evidence(DraftClass::model) >= kEnoughDrafts);
    const double as_prompt_ms = costs_.prompt_catch_up_ms(sequence.lag_rows);
    const bool is_first = long_run_.counts(DraftClass::model).tested == 0 && as_prompt_ms >= 0; // no draft of the pair was ever read
    if (is_first && catch_up_charge(as_prompt_ms / token_ms, false, true, sequence.tokens_left) == 0) return 0;
    return catch_up_charge(costs_.catch_up_ms(sequence.lag_rows) / token_ms, is_trusted, state.is_late, sequence.tokens_left);
}

// Takes the drafts of those who cannot pay their share of the round. True: shares must be made anew.
bool SpeculationPolicy::drop_unaffordable(Group group, Candidate& candidate, const Candidate& plain, bool is_probe) const {
    candidate.recording_ms = best_shape_.is_recorded(candidate.shape) ? 0 : costs_.recording_ms();
    const double token_ms = costs_.plain_ms(candidate.shape.batch) / static_cast<double>(group.size());
    const double per_sequence = token_ms * candidate.n_drafting;
    Account::Cost cost = {(candidate.ms - plain.ms) / per_sequence, candidate.recording_ms / per_sequence};
    const uint32_t n_before = candidate.n_drafting;
    for (SpeculatingSequence& sequence : group) {
        if (!sequence.choice.is_automatic) continue;
        cost.catch_up = catch_up_loss(sequence, token_ms, is_probe);
        if (sequence.state->account.affords(cost, sequence.choice.source == DraftSource::proposals)) continue;
        sequence.is_excused = sequence.expected_tokens() - 1 > cost.round;
        sequence.choice = {};
        candidate.n_drafting -= 1;
    }
    return candidate.n_drafting < n_before;
}

// Fills in the group's choices. plain: what a draft's cost is held against.
Candidate SpeculationPolicy::evaluate(Group group, const RoundShape& base, const AskedRound& asked, const Candidate* plain) const {
    Candidate candidate;
    candidate.model = asked.model, candidate.draft_len = asked.draft_len;
    for (SpeculatingSequence& sequence : group) {
        sequence.choice = sequence.choice_in(asked, long_run_, max_draft_len_);
        if (asked.draft_len > 0) sequence.is_excused = false;
        if (sequence.choice.is_automatic) candidate.n_drafting += 1;
    }
    do {
        candidate.shape = shape_of(group, base, true);
        candidate.ms = costs_.round_ms(candidate.shape);
    } while (plain && candidate.n_drafting > 0 && drop_unaffordable(group, candidate, *plain, asked.is_probe));
    for (const SpeculatingSequence& sequence : group) {
        const double expected = sequence.expected_tokens();
        candidate.tokens += expected;
        if (sequence.choice.is_automatic && sequence.choice.catch_up && !sequence.state->catching_up)
            candidate.catch_up_ms += costs_.catch_up_ms(sequence.lag_rows) * catch_up_share(sequence.lag_rows, sequence.tokens_left, expected);
    }
    return candidate;
}

AskedRound SpeculationPolicy::choose(Group group, const RoundShape& base, const Candidate& plain, const IsReady& is_ready) {
    if (!costs_.is_calibrated() || std::all_of(group.begin(), group.end(), [](const SpeculatingSequence& sequence) { return sequence.is_fixed; })) return {};
    for (SpeculatingSequence& sequence : group) sequence.is_excused = reference_.is_due();
    if (reference_.is_due()) return {};
    // What the others of the group run anyway is compiled for them.
    const auto can_start = [&](const Candidate& candidate) { return candidate.shape == plain.shape || is_ready(candidate.shape.model, candidate.shape.draft_len); };
    const auto evaluate_round = [&](bool model, uint32_t draft_len) { return evaluate(group, base, {model, draft_len}, &plain); };
    const auto [best, waits] = best_shape_.find(plain, max_draft_len_, evaluate_round, can_start);
    const bool drafts = best.n_drafting > 0;
    promised_ = !drafts ? 0 : group.size() == 1 ? kCompanyPlans : std::min(promised_ + 1, kCompanyPlans);
    const bool may_begin = group.size() == 1 || promised_ == kCompanyPlans || (drafts && !best.model);
    AskedRound asked = {best.model, best.draft_len, false};
    if (!drafts) asked = {.model = true, .draft_len = 1, .is_probe = true};
    const Candidate drafting = evaluate(group, base, asked, &plain);
    bool wins = may_begin && drafting.n_drafting > 0;
    if (asked.is_probe) {
        probe_savings_ = kProbeSavings;
        for (const SpeculatingSequence& sequence : group) probe_savings_ += catch_up_loss(sequence, 1 / plain.rate(), true);
        const bool is_saved_for = long_run_.savings >= probe_savings_ || std::any_of(group.begin(), group.end(), [](const SpeculatingSequence& sequence) { return sequence.state->spends_savings; });
        wins = wins && ((is_saved_for && could_win(group, plain, drafting, max_draft_len_, untaught_)) || could_win(group, plain, drafting, max_draft_len_, costs_));
    }
    if (wins && can_start(drafting)) return asked;
    for (SpeculatingSequence& sequence : group) {
        sequence.state->is_late |= waits || wins;
        sequence.is_excused |= drafts && !may_begin; // they would win, and wait for more promises
    }
    return {};
}

// Alone a search costs less than can be measured, and tells of proposals what nothing else does.
bool SpeculationPolicy::is_worth_searching(Group group, const Candidate& plain, const Candidate& chosen) {
    const bool is_promised = std::any_of(group.begin(), group.end(), [](const SpeculatingSequence& sequence) { return sequence.is_fixed && sequence.is_searched; });
    if (group.size() == 1 || is_promised || chosen.shape.draft_len > 0 || !costs_.is_calibrated()) return true;
    searches_ = proposals_could_win(group, plain, max_draft_len_, costs_, searches_);
    return searches_;
}

void SpeculationPolicy::begin_text(SequenceSpeculation& state, const RoundShape& base) const {
    state.began = true;
    if (!long_run_.is_known(DraftClass::model)) state.account.open(std::max(kUnknownAccount, std::min(kProbeSavings, long_run_.savings)));
    else if (usually_wins(long_run_.alpha(DraftClass::model), base, max_draft_len_, costs_)) state.account.open(kKnownAccount);
    else if (long_run_.savings >= std::max(kProbeSavings, probe_savings_)) state.account.open(kProbeSavings);
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
        const double loss = choice.is_automatic ? catch_up_loss(sequence, token_ms, is_probe) : 0;
        state.is_late = choice.draft_len == 0 && state.is_late;
        if (choice.catch_up) { // no round yet
            state.account.pay_catch_up(loss);
            long_run_.savings = std::max(0.0, long_run_.savings - loss);
            if (!state.catching_up) state.predicted_plain_tokens += costs_.catch_up_ms(sequence.lag_rows) / plain_ms;
            state.catching_up = true;
            continue;
        }
        state.catching_up = false;
        if (choice.is_automatic)
            state.account.pay({(chosen.ms - plain.ms) / token_ms / chosen.n_drafting, chosen.recording_ms / token_ms / chosen.n_drafting});
        sequence.begin_round(is_probe, chosen.ms / plain_ms);
    }
}

RoundPlan SpeculationPolicy::decide(Group group, uint32_t batch, bool transforms, const IsReady& is_ready) {
    const RoundShape base = {.batch = batch, .transforms = transforms};
    if (group.empty()) return {base};
    for (SpeculatingSequence& sequence : group) {
        SequenceSpeculation& state = *sequence.state;
        if (sequence.is_fixed) continue;
        const double n_tokens = state.began ? state.n_tokens : std::min<double>(kFirstTokens, sequence.tokens_left);
        if (!state.began) begin_text(state, base);
        state.account.earn(n_tokens);
    }
    const Candidate plain = evaluate(group, base, {}, nullptr);
    const AskedRound asked = choose(group, base, plain, is_ready);
    const Candidate chosen = evaluate(group, base, asked, asked.draft_len > 0 ? &plain : nullptr);
    commit(group, chosen, plain, asked.is_probe);
    best_shape_.begin(chosen, asked.is_probe);
    if (!asked.is_probe && chosen.n_drafting > 0) reference_.expect(chosen.rate() / plain.rate());
    reference_.begin(chosen.shape);
    for (SpeculatingSequence& sequence : group)
        if (sequence.is_searched) sequence.choice.match_len = sequence.match_len;
    const RoundShape shape = shape_of(group, base, false);
    return {shape, asked.is_probe, is_worth_searching(group, plain, chosen), costs_.round_ms(shape), chosen.tokens};
}

void SpeculationPolicy::observe(SequenceSpeculation& state, const DraftChoice& choice, uint32_t draft_len, uint32_t accepted_len, Foretold foretold) {
    const auto learn = [&](DraftClass drafts, uint32_t n_tested, uint32_t n_accepted) {
        state.estimator.observe(drafts, n_tested, n_accepted);
        long_run_.observe(drafts, n_tested, n_accepted);
    };
    state.n_tokens += accepted_len + 1;
    if (choice.draft_len == 0 && state.began && state.estimator.evidence(DraftClass::model) == 0)
        long_run_.savings = std::max(long_run_.savings, std::min(probe_savings_, long_run_.savings + kAllowance));
    if (choice.match_len > 0 && choice.source != DraftSource::proposals) { // a draft that costs nothing
        learn(proposal_class(choice.match_len), foretold == Foretold::nothing ? 0 : 1, foretold == Foretold::right ? 1 : 0);
        state.account.watch(foretold, 2 - costs_.v(2));
    }
    if (choice.draft_len == 0 || choice.catch_up) return;
    learn(choice.drafts, draft_len, accepted_len);
    if (choice.source == DraftSource::proposals && draft_len > 0 && accepted_len == 0) state.account.proposals_failed();
    if (!choice.is_automatic) return;
    state.account.credit(accepted_len);
    if (accepted_len > 0) state.probation.accepted(choice.drafts);
}

} // namespace auspex
