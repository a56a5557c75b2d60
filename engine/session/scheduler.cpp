// Life of a sequence: created → prompt read (target) → [draft caught up] → rounds → stopped [→ appended to → prompt read …]
// → destroyed.
#include "session/scheduler.h"

#include "accept/acceptance.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace auspex {

namespace {
constexpr uint32_t kCommandReserve = 512; // room that one more slot's pages and state may take
} // namespace

Status Scheduler::no_free_slot() const {
    return {Code::capacity, "all " + std::to_string(limits_.n_slots) + " sequences of this engine are in use; destroy one or raise max_sequences"};
}

LiveSequence& Scheduler::add(SequenceRequest request, const Tokenizer* tokenizer) {
    uint64_t id = next_id_++;
    LiveSequence& sequence = sequences_[id];
    sequence.id = id;
    sequence.slot = free_slots_.back();
    free_slots_.pop_back();
    sequence.request = std::move(request);
    sequence.created_ns = now_ns();
    if (tokenizer) sequence.stream.emplace(*tokenizer, false);
    return sequence;
}

Result<uint64_t> Scheduler::create(SequenceRequest request, const Tokenizer* tokenizer) {
    if (free_slots_.empty()) return no_free_slot();
    LiveSequence& sequence = add(std::move(request), tokenizer);
    sequence.tokens = sequence.request.prompt;
    sequence.prompt_n = static_cast<uint32_t>(sequence.tokens.size());
    sequence.prompt_rows.add(0, sequence.prompt_rows_wanted());
    return sequence.id;
}

Result<uint64_t> Scheduler::fork(uint64_t source_id, SequenceRequest request, const Tokenizer* tokenizer) {
    LiveSequence* source = find(source_id);
    if (!source) return Status(Code::invalid_argument, "fork of a sequence that does not exist");
    if (source->tokens.size() >= limits_.max_context) return Status(Code::capacity, "fork of a sequence whose context is full");
    if (free_slots_.empty()) return no_free_slot();
    LiveSequence& sequence = add(std::move(request), tokenizer);
    sequence.tokens = source->tokens;
    sequence.prompt_n = static_cast<uint32_t>(sequence.tokens.size());
    sequence.prompt_rows = source->prompt_rows;
    // A source that was itself not copied yet passes its own source on.
    sequence.fork_of = source->fork_of ? source->fork_of : source_id;
    sequence.fork_rows = source->fork_of ? source->fork_rows : sequence.prompt_rows_wanted();
    return sequence.id;
}

Status Scheduler::append(uint64_t id, SequenceRequest request, const Tokenizer* tokenizer) {
    LiveSequence* sequence = find(id);
    if (!sequence) return {Code::invalid_argument, "append to a sequence that does not exist"};
    if (sequence->stop == StopReason::none && !sequence->holds())
        return {Code::invalid_argument, "append to a sequence that is still running; wait for its end or cancel it"};
    const uint64_t n = sequence->tokens.size() + uint64_t(request.prompt.size());
    if (n >= limits_.max_context)
        return {Code::capacity, "the sequence has " + std::to_string(sequence->tokens.size()) + " tokens and " + std::to_string(request.prompt.size()) +
                                    " were to follow, which leaves no room in the context of " + std::to_string(limits_.max_context) +
                                    "; append less or raise the context"};
    sequence->append(std::move(request), tokenizer, now_ns());
    return ok_status();
}

LiveSequence* Scheduler::find(uint64_t id) {
    auto found = sequences_.find(id);
    return found == sequences_.end() || dying_.contains(id) ? nullptr : &found->second;
}

Status Scheduler::cancel(uint64_t id) {
    LiveSequence* sequence = find(id);
    if (!sequence) return {Code::invalid_argument, "the sequence does not exist"};
    if (sequence->stop != StopReason::none) return ok_status();
    sequence->stop = StopReason::cancelled;
    sequence->end_text();
    if (sequence->admitted) writer_.state_word(sequence->slot, AUSPEX_STATE_WORD(live), 0);
    return ok_status();
}

Status Scheduler::set_draft_len(uint64_t id, uint32_t draft_len) {
    LiveSequence* sequence = find(id);
    if (!sequence) return {Code::invalid_argument, "the sequence does not exist"};
    sequence->request.draft_len = draft_len;
    sequence->planned = false;
    if (sequence->admitted) writer_.state_word(sequence->slot, AUSPEX_STATE_WORD(search_len), std::min(draft_len, limits_.max_draft_len));
    return ok_status();
}

Status Scheduler::prepare(const SequenceRequest& request) {
    return turns_->prepare(turns_of(request, {limits_.max_batch, limits_.max_replay_rows, limits_.max_draft_len}, models_.draft != nullptr));
}

Status Scheduler::destroy(uint64_t id) {
    LiveSequence* sequence = find(id);
    if (!sequence) return {Code::invalid_argument, "the sequence does not exist"};
    AUSPEX_TRY(cancel(id));
    if (awaited(id)) dying_.insert(id);
    else release(*sequence);
    return ok_status();
}

bool Scheduler::awaited(uint64_t id) const {
    return std::any_of(sequences_.begin(), sequences_.end(), [&](const auto& other) { return other.second.fork_of == id; });
}

void Scheduler::release(LiveSequence& sequence) {
    // Turns in flight may still write into the pages; they go back to the pool when those are done.
    models_.target.cache().truncate(sequence.slot, 0, turns_->last_number());
    if (models_.draft) models_.draft->cache().truncate(sequence.slot, 0, turns_->last_number());
    free_slots_.push_back(sequence.slot);
    dying_.erase(sequence.id);
    sequences_.erase(sequence.id);
}

gpu::SlotState Scheduler::initial_state(const LiveSequence& sequence) const {
    const SequenceRequest& request = sequence.request;
    gpu::SlotState state = {};
    state.live = sequence.holds() || sequence.stop != StopReason::none ? 0 : 1;
    state.last_token = sequence.tokens.back();
    state.target_len = static_cast<uint32_t>(sequence.tokens.size()) - 1;
    state.draft_cache_len = sequence.draft_rows;
    state.draft_len = sequence.told_draft_len;
    state.max_generated = request.max_tokens == 0 ? ~0u : request.max_tokens;
    state.max_context = limits_.max_context;
    state.seed_low = static_cast<uint32_t>(request.sampling.seed);
    state.seed_high = static_cast<uint32_t>(request.sampling.seed >> 32);
    state.temperature = request.sampling.temperature;
    state.repeat_penalty = request.sampling.repeat_penalty;
    state.presence_penalty = request.sampling.presence_penalty;
    state.frequency_penalty = request.sampling.frequency_penalty;
    state.n_biases = static_cast<uint32_t>(request.sampling.biases.size());
    state.top_k = request.sampling.top_k;
    state.top_p = request.sampling.top_p;
    state.min_p = request.sampling.min_p;
    state.acceptance = static_cast<uint32_t>(request.sampling.acceptance);
    state.lenience = request.sampling.lenience;
    state.simulated_alpha = request.sampling.simulated_alpha;
    state.drafter = static_cast<uint32_t>(sequence.told_drafter);
    state.search_len = std::min(request.draft_len, limits_.max_draft_len);
    if (request.searches()) state.search = request.drafter == DrafterChoice::lookup ? gpu::kDrafterLookup : gpu::kDrafterNgram;
    state.ngram_max = request.ngram_max;
    state.n_stop = request.ignore_eos ? 0 : static_cast<uint32_t>(limits_.stop_ids.size());
    for (uint32_t i = 0; i < state.n_stop; ++i) state.stop_ids[i] = limits_.stop_ids[i];
    return state;
}

// Commands that a turn may need for one more sequence, besides tokens and whole page tables.
size_t Scheduler::command_words(const LiveSequence& sequence) const {
    return kCommandReserve + (sequence.admitted ? 0 : 2 * sequence.request.sampling.biases.size());
}

void Scheduler::admit(LiveSequence& sequence) {
    if (sequence.admitted) return;
    sequence.told_drafter = sequence.drafter;
    sequence.told_draft_len = sequence.draft_len;
    writer_.state(sequence.slot, initial_state(sequence));
    writer_.biases(sequence.slot, sequence.request.sampling.biases);
    writer_.history(sequence.slot, static_cast<uint32_t>(sequence.tokens.size()) - 1, std::span(&sequence.tokens.back(), 1));
    sequence.admitted = true;
}

Status Scheduler::map_rows(LiveSequence& sequence, bool of_draft, uint32_t n_rows) {
    std::vector<PageChange> changes;
    KvCache& cache = of_draft ? models_.draft->cache() : models_.target.cache();
    AUSPEX_TRY(cache.map(sequence.slot, std::min(n_rows, cache.shape().max_rows), changes));
    if (of_draft) writer_.draft_pages(changes);
    else writer_.target_pages(changes);
    return ok_status();
}

bool Scheduler::draft_has_room(uint32_t target_len) const {
    return models_.draft && target_len < models_.draft->cache().shape().max_rows;
}

uint32_t Scheduler::lag_rows(const LiveSequence& sequence) const {
    const uint32_t target_len = sequence.target_len + sequence.unread_undrafted; // at least, by then
    if (!draft_has_room(target_len)) return 0;
    // A round would carry one missing row, but by the row kernels: the prompt's rows are replayed.
    const bool row_of_prompt = sequence.draft_rows < sequence.target_len && sequence.prompt_rows.contains(sequence.draft_rows);
    return target_len > sequence.draft_rows + 1 || row_of_prompt ? target_len - sequence.draft_rows : 0;
}

bool Scheduler::lags(const LiveSequence& sequence) const {
    return sequence.planned && sequence.drafter == Drafter::model && lag_rows(sequence) > 0;
}

// The GPU is told what differs from what it knows of the slot's next round.
void Scheduler::tell_plan(LiveSequence& sequence) {
    if (sequence.told_drafter != sequence.drafter) writer_.state_word(sequence.slot, AUSPEX_STATE_WORD(drafter), static_cast<uint32_t>(sequence.drafter));
    if (sequence.told_draft_len != sequence.draft_len) writer_.state_word(sequence.slot, AUSPEX_STATE_WORD(draft_len), sequence.draft_len);
    sequence.told_drafter = sequence.drafter;
    sequence.told_draft_len = sequence.draft_len;
}

// The host's drafts for the next round, as many as there are. No round of the sequence is under way.
void Scheduler::ask_host(LiveSequence& sequence) {
    std::vector<uint32_t> drafts = sequence.request.host_drafter(sequence.tokens, sequence.draft_len);
    if (drafts.size() > sequence.draft_len) drafts.resize(sequence.draft_len);
    const uint32_t vocab = models_.target.config().vocab_size;
    drafts.erase(std::find_if(drafts.begin(), drafts.end(), [&](uint32_t token) { return token >= vocab; }), drafts.end());
    for (uint32_t i = 0; i < drafts.size(); ++i) writer_.state_word(sequence.slot, AUSPEX_STATE_WORD(proposed) + i, drafts[i]);
    writer_.state_word(sequence.slot, AUSPEX_STATE_WORD(n_proposed), static_cast<uint32_t>(drafts.size()));
    sequence.draft_len = static_cast<uint32_t>(drafts.size());
    if (drafts.empty()) sequence.drafter = Drafter::none;
}

bool Scheduler::awaits_round(const LiveSequence& sequence) const {
    if (sequence.stop != StopReason::none || sequence.holds() || !sequence.prompt_read()) return false;
    if (sequence.request.drafter == DrafterChoice::host && sequence.unread_rounds > 0) return false; // it is asked with all tokens known
    // Every queued round gives at least one token: no round is queued that certainly has nothing to do.
    uint64_t at_least = sequence.n_generated() + sequence.unread_rounds;
    if (sequence.request.max_tokens != 0 && at_least >= sequence.request.max_tokens) return false;
    return sequence.tokens.size() + sequence.unread_rounds < limits_.max_context;
}

Result<bool> Scheduler::start_forks() {
    std::vector<PageCopy> target_copies, draft_copies;
    uint32_t n_forks = 0;
    std::vector<uint64_t> finished_sources;
    for (auto& [id, sequence] : sequences_) {
        if (sequence.fork_of == 0) continue;
        LiveSequence& source = sequences_.at(sequence.fork_of);
        const uint32_t n_rows = sequence.fork_rows;
        bool draft_is_late = source.holds() && source.request.may_use_model() && draft_has_room(source.target_len) && source.draft_rows < source.target_len;
        if (!source.prompt_read() || draft_is_late) continue;
        if (writer_.room() < sequence.tokens.size() + command_words(sequence) + 2ull * models_.target.cache().pages_per_slot()) break;
        uint32_t draft_rows = models_.draft ? std::min(source.draft_rows, n_rows) : 0;
        std::vector<PageChange> changes;
        if (!models_.target.cache().fork(source.slot, sequence.slot, n_rows, changes, target_copies).ok()) break; // pages are on their way back
        writer_.target_pages(changes);
        changes.clear();
        if (draft_rows > 0) {
            if (models_.draft->cache().fork(source.slot, sequence.slot, draft_rows, changes, draft_copies).ok()) writer_.draft_pages(changes);
            else draft_rows = 0; // the draft reads the text itself when it first drafts
        }
        sequence.draft_rows = draft_rows;
        sequence.target_len = sequence.target_rows = n_rows;
        writer_.history(sequence.slot, 0, sequence.tokens);
        admit(sequence);
        finished_sources.push_back(sequence.fork_of);
        sequence.fork_of = 0;
        sequence.last_turn = turns_->last_number() + 1;
        ++n_forks;
    }
    if (n_forks == 0) return false;
    writer_.flush(turns_->next_buffers());
    turns_->start({.kind = TurnKind::copy}, {}, [models = models_, target_copies, draft_copies](Recording& cmd) {
        for (const PageCopy& copy : target_copies) models.target.cache().record_copy(cmd, copy);
        for (const PageCopy& copy : draft_copies) models.draft->cache().record_copy(cmd, copy);
    });
    for (uint64_t source : finished_sources)
        if (dying_.contains(source) && !awaited(source)) release(sequences_.at(source));
    return true;
}

double Scheduler::replay_ms(TurnKind kind, uint32_t rows) const {
    const auto pace = paces_.find(kind);
    const double ms = pace == paces_.end() ? -1 : pace->second.ms(rows);
    return ms >= 0 ? ms : planner_->replay_ms(kind != TurnKind::target_prompt, rows);
}

uint32_t Scheduler::slices_of_pass(uint32_t n_rows) const {
    const double ms = planner_->replay_ms(false, n_rows);
    return slices_of(ms, ms, limits_.max_submission_ms, models_.target.config().n_layers);
}

uint32_t Scheduler::replay_rows(TurnKind kind, double limit_ms) const {
    if (kind == TurnKind::draft_rows) return catch_up_rows(limits_.max_replay_rows);
    uint32_t rows = limits_.max_replay_rows;
    while (rows > kRowBucket && replay_ms(kind, rows) > limit_ms * replayed_model(kind).config().n_layers) rows = row_bucket(rows / 2, rows); // no cut is within a layer
    return rows;
}

Result<bool> Scheduler::start_replay(TurnKind kind, double limit_ms) {
    const bool of_draft = kind != TurnKind::target_prompt;
    const uint32_t limit = replay_rows(kind, limit_ms);
    uint32_t* list = reinterpret_cast<uint32_t*>(turns_->next_buffers().list.mapped());
    uint32_t n = 0;
    for (auto& [id, sequence] : sequences_) {
        if (n == limit || sequence.fork_of != 0) continue;
        if (sequence.stop != StopReason::none && !awaited(id)) continue; // forks may wait for a prompt nobody else wants
        uint32_t begin = sequence.target_rows, end = sequence.prompt_rows_wanted();
        if (of_draft) {
            bool wanted = sequence.prompt_read() && sequence.unread_rounds == 0 &&
                          (lags(sequence) || (sequence.holds() && sequence.request.may_use_model() && draft_has_room(sequence.target_len)));
            begin = sequence.draft_rows;
            end = wanted ? std::min(sequence.target_len, sequence.prompt_rows.end_of_path(begin)) : begin;
            if (sequence.prompt_rows.contains(begin) != (kind == TurnKind::draft_prompt)) continue; // the other kind's turn
        }
        if (begin >= end) continue;
        end = std::min(end, begin + (limit - n));
        if (writer_.room() < end - begin + command_words(sequence) + models_.target.cache().pages_per_slot()) break;
        if (!map_rows(sequence, of_draft, end).ok()) continue; // pages are on their way back
        for (uint32_t position = begin; position < end; ++position, ++n) {
            list[2 * n] = sequence.slot;
            list[2 * n + 1] = position;
        }
        if (of_draft) {
            sequence.draft_rows = end;
            writer_.state_word(sequence.slot, AUSPEX_STATE_WORD(draft_cache_len), end);
        } else {
            writer_.history(sequence.slot, begin, std::span(sequence.tokens).subspan(begin, end - begin));
            sequence.target_rows = end;
            sequence.target_len = end;
            sequence.prefilled_n += end - begin;
            admit(sequence);
        }
        sequence.last_turn = turns_->last_number() + 1;
    }
    if (n == 0) return false;
    const uint32_t bucket = kind == TurnKind::draft_rows ? limit : row_bucket(n, limits_.max_replay_rows);
    for (uint32_t i = n; i < bucket; ++i) list[2 * i] = gpu::kNoSlot;
    writer_.flush(turns_->next_buffers());
    const double ms = replay_ms(kind, bucket);
    turns_->start({.kind = kind, .rows = bucket, .slices = slices_of(ms, ms, limit_ms, replayed_model(kind).config().n_layers)}, {});
    return true;
}

Result<bool> Scheduler::start_round(double limit_ms) {
    RoundForm form = empty_round();
    Group group;
    for (auto& [id, sequence] : sequences_) {
        if (!sequence.planned || sequence.choice.catch_up || !awaits_round(sequence)) continue;
        if (group.size() == limits_.max_batch || writer_.room() < command_words(sequence)) break;
        group.push_back(&sequence);
        if (sequence.drafter == Drafter::host) {
            admit(sequence);
            ask_host(sequence);
        }
        form.draft_len = std::max(form.draft_len, sequence.draft_len);
    }

    std::vector<TurnEntry> entries;
    uint32_t* batch = reinterpret_cast<uint32_t*>(turns_->next_buffers().batch.mapped());
    for (LiveSequence* sequence : group) {
        if (writer_.room() < command_words(*sequence)) break;
        uint32_t end = sequence->target_len + sequence->unread_rows + form.draft_len + 1; // rows this round may touch
        if (!map_rows(*sequence, false, end).ok()) continue;                         // pages are on their way back
        sequence->planned = false;
        const bool by_model = sequence->drafter == Drafter::model;
        if (by_model && !map_rows(*sequence, true, end).ok()) continue;
        admit(*sequence);
        tell_plan(*sequence);
        form.model_drafts |= by_model;
        add_to_round(form, sequence->request);
        batch[entries.size()] = sequence->slot;
        entries.push_back({sequence->slot, sequence->id, sequence->epoch, sequence->choice, sequence->target_len});
        sequence->unread_rounds += 1;
        sequence->unread_rows += form.draft_len + 1;
        sequence->unread_undrafted += by_model ? 0 : 1;
        sequence->last_turn = turns_->last_number() + 1;
        if (sequence->first_round_ns == 0) sequence->first_round_ns = now_ns();
    }
    if (entries.empty()) return false;
    form.batch = std::min(std::bit_ceil(static_cast<uint32_t>(entries.size())), limits_.max_batch);
    if (RoundForm planned = form; !turns_->is_compiled({.kind = TurnKind::round, .round = form})) { // as when some of the group catch up
        planned.batch = std::max(planned.batch, planned_form_.batch);
        join_sampling(planned, planned_form_);
        if (turns_->is_compiled({.kind = TurnKind::round, .round = planned})) form = planned;
    }
    for (uint32_t i = static_cast<uint32_t>(entries.size()); i < form.batch; ++i) batch[i] = gpu::kNoSlot;
    writer_.flush(turns_->next_buffers());
    const RoundPlanner::Predicted predicted = planner_->predict(form);
    const uint32_t slices = slices_of(predicted.round_ms, predicted.target_pass_ms, limit_ms, models_.target.config().n_layers);
    turns_->start({.kind = TurnKind::round, .round = form, .slices = slices}, std::move(entries));
    return true;
}

Result<bool> Scheduler::start_next(double limit_ms) {
    AUSPEX_TRY_ASSIGN(forked, start_forks());
    if (forked) return true;
    AUSPEX_TRY_ASSIGN(read, start_replay(TurnKind::target_prompt, limit_ms));
    if (read) return true;
    // What was planned before draft prompts were read comes first; who was not part of it is in the plan after that.
    for (bool anew : {false, true}) {
        if (anew) AUSPEX_TRY(plan_round());
        for (TurnKind kind : {TurnKind::draft_prompt, TurnKind::draft_rows}) {
            if (!models_.draft) break;
            AUSPEX_TRY_ASSIGN(started, start_replay(kind, limit_ms));
            if (started) return true;
        }
        AUSPEX_TRY_ASSIGN(started, start_round(limit_ms));
        if (started) return true;
    }
    return false;
}

Status Scheduler::plan_round() {
    Group group;
    for (auto& [id, sequence] : sequences_) {
        sequence.planned = false;
        if (awaits_round(sequence)) group.push_back(&sequence);
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
            by_model |= models_.draft && sequence->request.may_use_model();
            by_others |= sequence->request.may_use_proposals();
            last_draft_len = std::max(last_draft_len, sequence->draft_len);
        }
        const uint32_t done = static_cast<uint32_t>(sequence->tokens.size()) + sequence->unread_rounds;
        uint32_t left = limits_.max_context - std::min(limits_.max_context, done);
        if (sequence->request.max_tokens != 0) left = std::min(left, sequence->request.max_tokens - std::min(sequence->request.max_tokens, done - sequence->prompt_n));
        entries.push_back({sequence, round_up(lag_rows(*sequence), catch_up_rows(limits_.max_replay_rows)), left});
        sequence->planned = true;
    }
    AUSPEX_TRY(ready_.ask_for(planned_form_, by_model, by_others, last_draft_len));
    ready_.begin_choice();
    planner_->plan(entries, planned_form_.batch, [&](bool model, uint32_t draft_len) {
        RoundForm form = planned_form_;
        form.model_drafts = model;
        form.draft_len = draft_len;
        return ready_.is_ready(form);
    });
    return ok_status();
}

void Scheduler::finish(const Turn& turn, StepResult& result) {
    if (turn.key.kind == TurnKind::draft_prompt || turn.key.kind == TurnKind::draft_rows) planner_->observe_catch_up(turn);
    if ((turn.key.kind == TurnKind::target_prompt || turn.key.kind == TurnKind::draft_prompt) && turn.verify_ms >= 0)
        paces_[turn.key.kind].observe(turn.key.rows, turn.verify_ms);
    if (turn.key.kind != TurnKind::round) return;
    // The buffers of this turn are written again two turns later, not before it was read here.
    TurnBuffers& buffers = turns_->buffers_of(turn.number);
    std::vector<gpu::RoundRecord> records(turn.entries.size());
    std::memcpy(records.data(), buffers.records.mapped(), records.size() * sizeof records[0]);
    const bool all_live = std::all_of(records.begin(), records.end(), [](const gpu::RoundRecord& record) { return record.live_before != 0; });
    planner_->observe_times(turn, static_cast<double>(turn.done_ns - std::max(turn.submitted_ns, last_turn_done_ns_)) * 1e-6, all_live && is_behind_round_);
    result.n_rounds_read += 1;
    RoundTimes& times = round_times_[turn.key.round.draft_len];
    times.rounds += 1;
    times.draft_ms += turn.draft_ms;
    times.verify_ms += turn.verify_ms;
    times.accept_ms += turn.accept_ms;
    if (last_round_done_ns_ != 0) times.wall_ms += static_cast<double>(turn.done_ns - last_round_done_ns_) * 1e-6;
    last_round_done_ns_ = turn.done_ns;

    for (size_t b = 0; b < turn.entries.size(); ++b) {
        auto found = sequences_.find(turn.entries[b].sequence);
        if (found == sequences_.end()) continue; // destroyed meanwhile
        LiveSequence& sequence = found->second;
        if (sequence.epoch != turn.entries[b].epoch) continue; // appended to meanwhile
        sequence.unread_rounds -= 1;
        sequence.unread_rows -= turn.key.round.draft_len + 1;
        sequence.unread_undrafted -= turn.entries[b].choice.source == DraftSource::model ? 0 : 1;
        const gpu::RoundRecord& record = records[b];
        if (!record.live_before || sequence.stop != StopReason::none) continue;
        sequence.stats.draft_ms += turn.draft_ms;
        sequence.stats.verify_ms += turn.verify_ms;
        sequence.stats.accept_ms += turn.accept_ms;
        if (sequence.first_token_ns == 0) sequence.first_round_ns = std::max(sequence.first_round_ns, last_turn_done_ns_); // it was queued behind the prompt
        const Outcome outcome = read_outcome(record);
        sequence.apply(outcome, turn.done_ns);
        if (trace_.is_on()) trace_.add(outcome);
        // Only the host knows text: rounds under way go on, and nobody reads them.
        if (sequence.stop == StopReason::text) writer_.state_word(sequence.slot, AUSPEX_STATE_WORD(live), 0);
        planner_->observe_outcome(sequence, turn.entries[b].choice, outcome);
        // Pages beyond what is kept and what queued rounds may touch go back.
        uint32_t keep = sequence.target_len + sequence.unread_rows + 1;
        models_.target.cache().truncate(sequence.slot, keep, turns_->last_number());
        if (models_.draft) models_.draft->cache().truncate(sequence.slot, keep, turns_->last_number());
    }
}

Status Scheduler::read_done(StepResult& result) {
    for (;;) {
        AUSPEX_TRY_ASSIGN(done, turns_->poll());
        if (!done) break;
        finish(*done, result);
        if (trace_.is_on()) trace_.turn_is_done(*done);
        last_turn_done_ns_ = done->done_ns;
        is_behind_round_ = done->key.kind == TurnKind::round;
    }
    // Also when nothing is in flight: pages may have come back since the last turn was done.
    models_.target.cache().collect(turns_->done_number());
    if (models_.draft) models_.draft->cache().collect(turns_->done_number());
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

Status Scheduler::with_free_slot(uint32_t n_rows, const UseSlot& use, bool of_draft) {
    if (free_slots_.empty()) return no_free_slot();
    AUSPEX_TRY(drain());
    const uint32_t slot = free_slots_.back();
    std::vector<PageChange> pages;
    KvCache& cache = of_draft ? models_.draft->cache() : models_.target.cache();
    AUSPEX_TRY(cache.map(slot, n_rows, pages));
    const Status status = use(slot, pages);
    cache.truncate(slot, 0, turns_->last_number());
    cache.collect(turns_->done_number());
    return status;
}

Result<Scheduler::StepResult> Scheduler::step(double budget_ms) {
    StepResult result;
    AUSPEX_TRY(read_done(result));
    AUSPEX_TRY(turns_->adopt_compiled());
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
    for (const auto& [id, sequence] : sequences_)
        if (sequence.stop == StopReason::none && !(sequence.holds() && sequence.prompt_read() && sequence.last_turn <= turns_->done_number())) result.n_active += 1;
    result.pending = !turns_->idle() || result.n_active > 0;
    return result;
}

void Scheduler::set_trace(TraceSink sink) {
    turns_->time_copies(bool(sink));
    trace_.set(std::move(sink));
}

RoundTimes Scheduler::take_round_times(uint32_t draft_len) {
    RoundTimes times = round_times_[draft_len];
    round_times_.erase(draft_len);
    last_round_done_ns_ = 0;
    return times;
}

} // namespace auspex
