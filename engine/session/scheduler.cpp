// Life of a sequence: let in → prefill → [catch-up] → rounds → stopped [→ appended to → prefill …] → destroyed.
#include "session/scheduler.h"

#include <algorithm>
#include <bit>

namespace auspex {

Status Scheduler::prepare(const SequenceRequest& request) {
    return turns_->prepare(turns_of(request, turn_limits_));
}

Result<bool> Scheduler::start_forks() {
    std::vector<CacheCopy> copies;
    std::vector<uint64_t> sources; // of those that are copied
    for (auto& [id, sequence] : admission_->sequences()) {
        if (sequence.fork_of == 0) continue;
        const LiveSequence& source = admission_->sequences().at(sequence.fork_of);
        const bool draft_is_late = source.holds_for_draft(draft_context_) && source.draft_rows < source.target_len;
        if (!sequence.slot || !source.is_prefilled() || draft_is_late) continue;
        if (!slots_->has_room(sequence, sequence.tokens.size(), 2)) break;
        if (!slots_->share(*source.slot, *sequence.slot, ModelRole::target, sequence.fork_rows, copies).ok()) {
            is_short(sequence, ModelRole::target, sequence.fork_rows);
            break;
        }
        sequence.draft_rows = sequence.names_model() ? std::min(source.draft_rows, sequence.fork_rows) : 0;
        // The draft reads the text itself when it first drafts, if need be.
        if (!slots_->share(*source.slot, *sequence.slot, ModelRole::draft, sequence.draft_rows, copies).ok()) sequence.draft_rows = 0;
        sequence.target_len = sequence.target_rows = sequence.fork_rows;
        slots_->tell_tokens(*sequence.slot, 0, sequence.tokens);
        slots_->tell(sequence);
        sources.push_back(sequence.fork_of);
        sequence.fork_of = 0;
        sequence.last_turn = turns_->last_number() + 1;
    }
    if (sources.empty()) return false;
    slots_->hand_over(turns_->next_buffers());
    turns_->start({.kind = TurnKind::copy}, {}, [slots = slots_, copies](Recording& cmd) { slots->record_copies(cmd, copies); });
    for (uint64_t source : sources) admission_->forks_are_copied(source);
    return true;
}

uint32_t Scheduler::slices_of_pass(uint32_t n_rows) const {
    const double ms = planner_->pass_ms(n_rows);
    return slices_of(ms, ms, limits_.max_submission_ms, models_.target.config().n_layers);
}

uint32_t Scheduler::replay_rows(TurnKind kind, double limit_ms) const {
    if (is_of_answers(kind)) return catch_up_rows(limits_.max_replay_rows);
    const auto ms_of = [&](uint32_t rows) { return planner_->replay_ms(kind, rows); };
    const uint32_t most = rows_within(limit_ms * replayed_layers(kind), limits_.max_replay_rows, ms_of, shorter_bucket); // no cut is within a layer
    const auto& all = admission_->sequences();
    const auto n_speaking = static_cast<uint32_t>(std::count_if(all.begin(), all.end(), [](const auto& entry) { return entry.second.is_speaking(); }));
    if (n_speaking == 0) return most;
    const double round_ms = planner_->costs().plain_ms(std::min(std::bit_ceil(n_speaking), limits_.max_batch));
    return rows_within(limits_.max_gap_ms - round_ms, most, ms_of, shorter_bucket);
}

// Rows [first, second) of a cache that a turn of this kind is to fill for the sequence; none: first >= second.
std::pair<uint32_t, uint32_t> Scheduler::rows_to_replay(const LiveSequence& sequence, TurnKind kind) const {
    const bool is_wanted = is_of_target(kind) ? !sequence.is_prefilled()
                                              : sequence.is_prefilled() && sequence.unread_rounds == 0 && (sequence.lags(draft_context_) || sequence.holds_for_draft(draft_context_));
    const uint32_t begin = is_of_target(kind) ? sequence.target_rows : sequence.draft_rows;
    if (!is_wanted || sequence.prompt_rows.contains(begin) == is_of_answers(kind)) return {begin, begin}; // the other kind's turn
    return {begin, std::min(is_of_target(kind) ? sequence.wanted_rows : sequence.target_len, sequence.prompt_rows.end_of_path(begin))};
}

std::vector<LiveSequence*> Scheduler::readers(TurnKind kind) {
    Group group;
    for (auto& [id, sequence] : admission_->sequences()) {
        if (!sequence.slot || sequence.fork_of != 0) continue;
        if (sequence.stop != StopReason::none && !admission_->is_awaited(id)) continue; // forks may wait for a prefill that nobody else wants
        const auto [begin, end] = rows_to_replay(sequence, kind);
        if (begin < end) group.push_back(&sequence);
    }
    std::stable_sort(group.begin(), group.end(), [](const LiveSequence* a, const LiveSequence* b) { return a->created_ns < b->created_ns; });
    order_.arrange(group, [](const LiveSequence* sequence) { return sequence->id; });
    return group;
}

Result<bool> Scheduler::start_replay(TurnKind kind, double limit_ms) {
    Group group = readers(kind);
    if (group.empty()) return false;
    const uint32_t limit = replay_rows(kind, limit_ms);
    std::vector<ReplayRow> rows;
    uint64_t first = 0;
    for (LiveSequence* sequence : group) {
        if (rows.size() == limit) break;
        if (!slots_->has_room(*sequence, sequence->tokens.size(), 2)) break;
        if (kind == TurnKind::prefill && beginnings_) beginnings_->find(*sequence, turns_->last_number());
        auto [begin, end] = rows_to_replay(*sequence, kind);
        if (begin >= end) continue;
        end = std::min(end, begin + (limit - static_cast<uint32_t>(rows.size())));
        if (!slots_->map(*sequence->slot, replayed(kind), end).ok()) {
            is_short(*sequence, replayed(kind), end);
            continue;
        }
        if (rows.empty()) first = sequence->id;
        for (uint32_t position = begin; position < end; ++position) rows.push_back({sequence->slot->number, position});
        if (is_of_target(kind)) {
            slots_->tell_tokens(*sequence->slot, begin, std::span(sequence->tokens).subspan(begin, end - begin));
            sequence->target_rows = sequence->target_len = end;
            sequence->prefilled_n += end - begin;
            slots_->tell(*sequence);
        } else {
            sequence->draft_rows = end;
            slots_->tell_draft_rows(*sequence->slot, end);
        }
        if (!is_of_answers(kind) && beginnings_) beginnings_->share(*sequence, replayed(kind), end);
        sequence->last_turn = turns_->last_number() + 1;
    }
    if (rows.empty()) return false;
    const uint32_t bucket = is_of_answers(kind) ? limit : row_bucket(static_cast<uint32_t>(rows.size()), limits_.max_replay_rows);
    turns_->next_buffers().write_list(rows, bucket);
    slots_->hand_over(turns_->next_buffers());
    const double ms = planner_->replay_ms(kind, bucket);
    turns_->start({.kind = kind, .rows = bucket, .slices = slices_of(ms, ms, limit_ms, replayed_layers(kind))}, {});
    order_.chunk_began(first);
    return true;
}

Result<bool> Scheduler::start_round(double limit_ms) {
    RoundForm form = empty_round();
    Group group;
    for (auto& [id, sequence] : admission_->sequences()) {
        if (!sequence.planned || sequence.choice.catch_up || !sequence.awaits_round(limits_.max_context)) continue;
        if (group.size() == limits_.max_batch || !slots_->has_room(sequence)) break;
        group.push_back(&sequence);
        if (sequence.who().need == DraftNeed::host) {
            slots_->tell(sequence);
            slots_->tell_proposals(*sequence.slot, sequence.ask(models_.target.config().vocab_size));
        }
        form.draft_len = std::max(form.draft_len, sequence.draft_len);
    }

    std::vector<TurnEntry> entries;
    std::vector<uint32_t> batch;
    for (LiveSequence* sequence : group) {
        if (!slots_->has_room(*sequence)) break;
        const uint32_t end = sequence->target_len + sequence->unread_rows + form.n_nodes(); // rows this round may touch
        const bool fills = sequence->who().leaves == DraftRows::own_cache;
        if (!slots_->map(*sequence->slot, ModelRole::target, end).ok()) {
            is_short(*sequence, ModelRole::target, end);
            continue;
        }
        sequence->planned = false;
        if (fills && !slots_->map(*sequence->slot, ModelRole::draft, end).ok()) {
            is_short(*sequence, ModelRole::draft, end);
            continue;
        }
        slots_->tell(*sequence);
        slots_->tell_plan(*sequence);
        form.model_drafts |= sequence->who().need == DraftNeed::pass;
        add_to_round(form, sequence->request);
        batch.push_back(sequence->slot->number);
        entries.push_back({sequence->id, sequence->epoch, sequence->choice, sequence->target_len, fills});
        sequence->unread_rounds += 1;
        sequence->unread_rows += form.n_nodes();
        sequence->unread_undrafted += fills ? 0 : 1;
        sequence->last_turn = turns_->last_number() + 1;
        if (sequence->first_round_ns == 0) sequence->first_round_ns = now_ns();
    }
    if (entries.empty()) return false;
    form.batch = std::min(std::bit_ceil(static_cast<uint32_t>(entries.size())), limits_.max_batch);
    if (!searches_pay_ && turns_->is_compiled({.kind = TurnKind::round, .round = without_search(form)})) form.searches = false;
    if (RoundForm planned = form; !turns_->is_compiled({.kind = TurnKind::round, .round = form})) { // as when some of the group catch up
        planned.batch = std::max(planned.batch, planned_form_.batch);
        join_sampling(planned, planned_form_);
        if (turns_->is_compiled({.kind = TurnKind::round, .round = planned})) form = planned;
    }
    turns_->next_buffers().write_batch(batch, form.batch);
    slots_->hand_over(turns_->next_buffers());
    const RoundPlanner::Predicted predicted = planner_->predict(form);
    const uint32_t slices = slices_of(predicted.round_ms, predicted.target_pass_ms, limit_ms, models_.target.config().n_layers);
    turns_->start({.kind = TurnKind::round, .round = form, .slices = slices}, std::move(entries));
    order_.round_began();
    return true;
}

Result<bool> Scheduler::start_first_of(std::initializer_list<TurnKind> kinds, double limit_ms) {
    for (TurnKind kind : kinds) {
        if (!is_of_target(kind) && draft_context_ == 0) continue;
        AUSPEX_TRY_ASSIGN(started, kind == TurnKind::round ? start_round(limit_ms) : start_replay(kind, limit_ms));
        if (started) return true;
    }
    return false;
}

// Those who are further come first: texts whose round is due, then drafts that catch up, then prompts.
Result<bool> Scheduler::start_next(double limit_ms) {
    using enum TurnKind;
    AUSPEX_TRY_ASSIGN(forked, start_forks());
    if (forked) return true;
    if (order_.round_is_due()) {
        AUSPEX_TRY_ASSIGN(pending, start_first_of({round}, limit_ms));
        if (pending) return true;
        AUSPEX_TRY(plan_round());
        return start_first_of({round, prompt_catch_up, answer_catch_up, prefill, answer_prefill}, limit_ms);
    }
    // The pending plan runs first; sequences that joined since are in the next plan.
    AUSPEX_TRY_ASSIGN(pending, start_first_of({prompt_catch_up, answer_catch_up, prefill, answer_prefill, round}, limit_ms));
    if (pending) return true;
    AUSPEX_TRY(plan_round());
    return start_first_of({prompt_catch_up, answer_catch_up, round}, limit_ms);
}

void Scheduler::is_short(const LiveSequence& sequence, ModelRole of, uint32_t n_rows) {
    const PageList& pages = sequence.slot->pages_of(of);
    if (!shortage_) shortage_ = {of, pages.pages_for(std::min(n_rows, models_.cache_of(of)->shape().max_rows)) - pages.size()};
}

void Scheduler::make_room() {
    if (!shortage_) return;
    admission_->make_room(shortage_->of, shortage_->n_pages);
    shortage_.reset();
}

Status Scheduler::plan_round() {
    Group group;
    for (auto& [id, sequence] : admission_->sequences()) {
        sequence.planned = false;
        if (sequence.awaits_round(limits_.max_context)) group.push_back(&sequence);
    }
    if (group.empty()) return ok_status();
    // Who waited longest goes first when not all fit one batch.
    std::stable_sort(group.begin(), group.end(), [](const LiveSequence* a, const LiveSequence* b) { return a->last_turn < b->last_turn; });
    if (group.size() > limits_.max_batch) group.resize(limits_.max_batch);
    std::vector<RoundPlanner::Entry> entries;
    planned_form_ = empty_round();
    planned_form_.batch = std::min(std::bit_ceil(static_cast<uint32_t>(group.size())), limits_.max_batch);
    bool by_model = false, by_others = false; // whose drafts may be chosen
    uint32_t last_draft_len = 0;              // of theirs
    for (LiveSequence* sequence : group) {
        add_to_round(planned_form_, sequence->request);
        if (sequence->request.draft_len == kAutoDraftLen && sequence->first_token_ns != 0) { // what comes first is not to wait for the compiler
            by_model |= turn_limits_.has_draft && sequence->may_use_model();
            by_others |= sequence->request.may_use_proposals();
            last_draft_len = std::max(last_draft_len, sequence->draft_len);
        }
        entries.push_back({sequence, round_up(sequence->lag_rows(draft_context_), catch_up_rows(limits_.max_replay_rows)), sequence->tokens_left(limits_.max_context)});
        sequence->planned = true;
    }
    AUSPEX_TRY(ready_.ask_for(planned_form_, by_model, by_others, last_draft_len));
    ready_.begin_choice();
    searches_pay_ = planner_->plan(entries, planned_form_.batch, [&](bool model, uint32_t draft_len) {
        RoundForm form = planned_form_;
        form.model_drafts = model;
        form.draft_len = draft_len;
        return ready_.is_ready(form);
    });
    return ok_status();
}

namespace {
constexpr uint32_t kUsualAnswer = 256; // tokens, of one that may go on until its context is full
}

double Scheduler::work_ms(const LiveSequence& sequence) const {
    const uint32_t to_read = sequence.wanted_rows - std::min(sequence.wanted_rows, sequence.target_rows), chunk = limits_.max_replay_rows;
    const uint32_t to_say = sequence.holds() ? 0 : std::min(sequence.tokens_left(limits_.max_context), kUsualAnswer);
    return to_read * planner_->replay_ms(TurnKind::prefill, chunk) / chunk + to_say * planner_->costs().plain_ms(limits_.max_batch) / limits_.max_batch;
}

double Scheduler::wait_ms(uint32_t place) const {
    if (!planner_->costs().is_calibrated()) return -1;
    double ahead_ms = 0;
    uint32_t n_ahead = 0;
    const auto add = [&](const LiveSequence& sequence) {
        ahead_ms += work_ms(sequence);
        n_ahead += 1;
    };
    for (const auto& [id, sequence] : admission_->sequences())
        if (sequence.slot && !sequence.is_over()) add(sequence);
    for (const auto& [key, id] : admission_->waiting().order())
        if (place-- > 0) add(admission_->sequences().at(id));
        else break;
    return predicted_wait_ms(ahead_ms, n_ahead, slots_->n_slots());
}

Scheduler::Position Scheduler::position(const LiveSequence& sequence) const {
    if (sequence.is_held_back) return {Phase::parked};
    const bool waits = admission_->is_waiting(sequence);
    if (sequence.is_over() || !(sequence.slot || waits)) return {Phase::finished};
    if (!waits) return {sequence.is_prefilled() ? Phase::running : Phase::prompt};
    const uint32_t place = admission_->place(sequence);
    return {Phase::waiting, place, wait_ms(place)};
}

EngineLoad Scheduler::load() const {
    EngineLoad load = {.n_waiting = admission_->waiting().size(), .wait_ms = wait_ms(admission_->waiting().size()), .n_parked = admission_->n_parked()};
    for (const auto& [id, sequence] : admission_->sequences()) {
        if (sequence.slot && !sequence.is_over()) load.n_running += 1;
        if (admission_->is_waiting(sequence)) load.waiting_tokens += sequence.tokens.size();
    }
    const auto count = [&](ModelRole of, uint32_t& pages, uint32_t& free, uint32_t& evictable) {
        if (!models_.cache_of(of)) return;
        const PagePool& pool = models_.cache_of(of)->pool();
        pages = pool.n_pages(), free = pool.n_available(), evictable = pool.n_spare();
    };
    count(ModelRole::target, load.target_pages, load.target_pages_free, load.target_pages_evictable);
    count(ModelRole::draft, load.draft_pages, load.draft_pages_free, load.draft_pages_evictable);
    if (beginnings_) load.prefix = beginnings_->counts();
    if (const TurnQueue::Pending pending = turns_->pending(); pending.key) {
        load.turn_ms = pending.ms;
        const TurnKey& key = *pending.key;
        load.turn_expected_ms = key.kind == TurnKind::round ? planner_->predict(key.round).round_ms
                                : key.kind == TurnKind::copy ? planner_->costs().plain_ms(1)
                                                             : planner_->replay_ms(key.kind, key.rows);
    }
    return load;
}

Status Scheduler::read_done(StepResult& result) {
    for (;;) {
        AUSPEX_TRY_ASSIGN(done, turns_->poll());
        if (!done) break;
        // Its buffers are written again two turns later.
        if (outcomes_->take(*done, turns_->buffers_of(done->number), turns_->last_number())) result.n_rounds_read += 1;
    }
    slots_->collect(turns_->done_number()); // also when nothing is in flight: pages may have come back since the last turn was done
    return ok_status();
}

Status Scheduler::drain() {
    StepResult ignored;
    AUSPEX_TRY_ASSIGN(submitted, turns_->submit(kNoBudget, true));
    static_cast<void>(submitted);
    while (!turns_->idle()) {
        AUSPEX_TRY_ASSIGN(done, turns_->wait(1'000'000'000));
        static_cast<void>(done);
        AUSPEX_TRY(read_done(ignored));
    }
    return read_done(ignored);
}

Status Scheduler::with_free_slot(uint32_t n_rows, const Slots::Use& use, ModelRole of) {
    if (!slots_->has_free()) return admission_->no_free_slot();
    AUSPEX_TRY(drain());
    return slots_->lend(models_.cache_role(of), n_rows, use);
}

Result<Scheduler::StepResult> Scheduler::step(double budget_ms) {
    StepResult result;
    AUSPEX_TRY(read_done(result));
    AUSPEX_TRY(turns_->adopt_compiled());
    admission_->let_in();
    double left = budget_ms < 0 ? kNoBudget : budget_ms;
    const double limit_ms = std::min(left, limits_.max_submission_ms);
    for (;;) {
        if (!turns_->partly_submitted()) {
            if (!turns_->can_start()) break;
            AUSPEX_TRY_ASSIGN(started, start_next(limit_ms));
            if (!started) break;
        }
        AUSPEX_TRY_ASSIGN(submitted, turns_->submit(left, result.submitted_ms == 0));
        result.submitted_ms += submitted;
        left -= submitted;
        if (turns_->partly_submitted() || left <= 0) break;
    }
    make_room();
    for (const auto& [id, sequence] : admission_->sequences()) {
        if (!sequence.slot && !admission_->is_waiting(sequence)) continue; // it ended, or its caller has parked it
        if (sequence.stop == StopReason::none && !(sequence.holds() && sequence.is_prefilled() && sequence.last_turn <= turns_->done_number())) result.n_active += 1;
    }
    result.pending = !turns_->idle() || result.n_active > 0;
    return result;
}

} // namespace auspex
