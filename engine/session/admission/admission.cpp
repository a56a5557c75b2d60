// Whoever is let in has pages to begin with; should they not be enough later, somebody makes room for the others and comes back.
#include "session/admission/admission.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace auspex {

namespace {
const char* name_of(ModelRole of) { return of == ModelRole::target ? "target" : "draft"; }

// Whether other drafts, or none, would give another text of its seed.
bool text_depends_on_drafts(const SequenceRequest& request) {
    return request.sampling.temperature > 0 && request.sampling.acceptance != AcceptanceRule::coupled && request.draft_len != kAutoDraftLen;
}
} // namespace

Status Admission::no_free_slot() const {
    return {Code::capacity, "all " + std::to_string(slots_->n_slots()) + " sequences of this engine are in use; destroy one or raise max_sequences"};
}

LiveSequence& Admission::add(SequenceRequest request, std::vector<uint32_t> tokens, const Tokenizer* tokenizer) {
    const uint64_t id = next_id_++;
    LiveSequence& sequence = sequences_[id];
    sequence.id = id;
    sequence.request = std::move(request);
    sequence.tokens = std::move(tokens);
    sequence.prompt_n = static_cast<uint32_t>(sequence.tokens.size());
    sequence.wanted_rows = sequence.prompt_n - 1;
    sequence.came_ns = sequence.created_ns = now_ns();
    if (tokenizer) sequence.stream.emplace(*tokenizer, false);
    return sequence;
}

Result<uint64_t> Admission::create(SequenceRequest request, const Tokenizer* tokenizer) {
    std::vector<uint32_t> tokens = request.prompt;
    LiveSequence& sequence = add(std::move(request), std::move(tokens), tokenizer);
    sequence.cache_salt = sequence.request.cache_salt;
    sequence.prompt_rows.add(0, sequence.wanted_rows);
    const uint64_t id = sequence.id;
    if (Status status = wait_or_enter(sequence); !status.ok()) {
        sequences_.erase(id);
        return status;
    }
    return id;
}

Result<uint64_t> Admission::fork(uint64_t source_id, SequenceRequest request, const Tokenizer* tokenizer) {
    LiveSequence* source = find(source_id);
    if (!source) return Status(Code::invalid_argument, "fork of a sequence that does not exist");
    if (source->tokens.size() >= limits_.max_context) return Status(Code::capacity, "fork of a sequence whose context is full");
    LiveSequence& sequence = add(std::move(request), source->tokens, tokenizer);
    sequence.cache_salt = source->cache_salt;
    sequence.prompt_rows = source->prompt_rows;
    // A source that was itself not copied yet passes its own source on. One that has no rows, nor waits to get them, gives none.
    sequence.fork_of = source->fork_of ? source->fork_of : source->slot || is_waiting(*source) ? source_id : 0;
    sequence.fork_rows = source->fork_of ? source->fork_rows : sequence.wanted_rows;
    const uint64_t id = sequence.id;
    if (Status status = wait_or_enter(sequence); !status.ok()) {
        sequences_.erase(id);
        return status;
    }
    return id;
}

Status Admission::append(uint64_t id, SequenceRequest request, const Tokenizer* tokenizer) {
    LiveSequence* sequence = find(id);
    if (!sequence) return {Code::invalid_argument, "append to a sequence that does not exist"};
    if (sequence->stop == StopReason::none && !sequence->holds())
        return {Code::invalid_argument, "append to a sequence that is still running; wait for its end or cancel it"};
    const uint64_t n = sequence->tokens.size() + uint64_t(request.prompt.size());
    if (n >= limits_.max_context)
        return {Code::capacity, "the sequence has " + std::to_string(sequence->tokens.size()) + " tokens and " + std::to_string(request.prompt.size()) +
                                    " were to follow, which leaves no room in the context of " + std::to_string(limits_.max_context) +
                                    "; append less or raise the context"};
    leave_waiting(*sequence); // its priority may change
    sequence->append(std::move(request), tokenizer, now_ns());
    sequence->parked_at = n_ended_ - 1;
    if (sequence->slot) sequence->slot->is_told = false;
    else if (!sequence->is_held_back) enter_waiting(*sequence);
    let_in();
    return ok_status();
}

LiveSequence* Admission::find(uint64_t id) {
    auto found = sequences_.find(id);
    return found == sequences_.end() || dying_.contains(id) ? nullptr : &found->second;
}

Status Admission::cancel(uint64_t id) {
    LiveSequence* sequence = find(id);
    if (!sequence) return {Code::invalid_argument, "the sequence does not exist"};
    if (sequence->stop != StopReason::none) return ok_status();
    sequence->stop = StopReason::cancelled;
    sequence->end_text();
    has_ended();
    if (sequence->slot) slots_->tell_end(*sequence->slot);
    else {
        leave_waiting(*sequence);
        part_from_forks(id);
        part_from_source(*sequence);
    }
    return ok_status();
}

Status Admission::set_draft_len(uint64_t id, uint32_t draft_len) {
    LiveSequence* sequence = find(id);
    if (!sequence) return {Code::invalid_argument, "the sequence does not exist"};
    sequence->request.draft_len = draft_len;
    sequence->planned = false;
    if (sequence->slot) slots_->tell_search_len(*sequence->slot, draft_len);
    return ok_status();
}

Status Admission::destroy(uint64_t id) {
    LiveSequence* sequence = find(id);
    if (!sequence) return {Code::invalid_argument, "the sequence does not exist"};
    AUSPEX_TRY(cancel(id));
    has_ended();
    dying_.insert(id);
    release_when_possible(*sequence);
    return ok_status();
}

Status Admission::park(uint64_t id) {
    LiveSequence* sequence = find(id);
    if (!sequence) return {Code::invalid_argument, "the sequence does not exist"};
    sequence->is_held_back = true;
    leave_waiting(*sequence);
    if (sequence->slot) unseat(*sequence);
    else part_from_forks(id);
    return ok_status();
}

Status Admission::resume(uint64_t id) {
    LiveSequence* sequence = find(id);
    if (!sequence) return {Code::invalid_argument, "the sequence does not exist"};
    if (!sequence->is_held_back) return ok_status();
    sequence->is_held_back = false;
    sequence->parked_at = n_ended_ - 1; // it need not wait for anybody's end
    if (sequence->stop == StopReason::none && !sequence->slot) enter_waiting(*sequence);
    let_in();
    return ok_status();
}

bool Admission::is_awaited(uint64_t id) const {
    return std::any_of(sequences_.begin(), sequences_.end(), [&](const auto& other) { return other.second.fork_of == id; });
}

void Admission::forks_are_copied(uint64_t source) {
    if (dying_.contains(source)) release_when_possible(sequences_.at(source));
}

void Admission::release_when_possible(LiveSequence& sequence) {
    if (dying_.contains(sequence.id) && !is_awaited(sequence.id)) release(sequence);
}

void Admission::release(LiveSequence& sequence) {
    part_from_source(sequence);
    leave_waiting(sequence);
    if (sequence.slot) leave_slot(sequence);
    dying_.erase(sequence.id);
    sequences_.erase(sequence.id);
}

void Admission::part_from_forks(uint64_t source) {
    for (auto& [id, sequence] : sequences_)
        if (sequence.fork_of == source) sequence.fork_of = sequence.fork_rows = 0;
}

void Admission::part_from_source(LiveSequence& fork) {
    fork.fork_rows = 0;
    if (const uint64_t source = std::exchange(fork.fork_of, 0)) forks_are_copied(source);
}

void Admission::leave_slot(LiveSequence& sequence) {
    if (beginnings_) beginnings_->share_all(sequence);
    slots_->give_back(*sequence.slot, turns_->last_number());
}

void Admission::unseat(LiveSequence& sequence) {
    part_from_forks(sequence.id);
    slots_->tell_end(*sequence.slot);
    leave_slot(sequence);
    sequence.forget_rows();
    part_from_source(sequence);
    sequence.n_parked += 1;
    n_parked_ += 1;
    sequence.parked_at = n_ended_;
    release_when_possible(sequence); // last: it may be gone
}

// ---- waiting

void Admission::enter_waiting(LiveSequence& sequence) {
    waiting_.enter(sequence.id, sequence.request.priority, sequence.came_ns);
    if (sequence.n_parked > 0) n_back_ += 1;
}

void Admission::leave_waiting(LiveSequence& sequence) {
    if (!is_waiting(sequence)) return;
    waiting_.leave(sequence.id, sequence.request.priority, sequence.came_ns);
    if (sequence.n_parked > 0) n_back_ -= 1;
}

uint32_t Admission::place(const LiveSequence& sequence) const { return waiting_.place(sequence.id, sequence.request.priority, sequence.came_ns); }

Status Admission::wait_or_enter(LiveSequence& sequence) {
    enter_waiting(sequence);
    let_in();
    if (sequence.slot || waiting_.size() - n_back_ <= limits_.max_waiting) return ok_status();
    leave_waiting(sequence);
    if (limits_.max_waiting > 0) {
        const double ms = wait_ms_ ? wait_ms_() : -1;
        return {Code::capacity, std::to_string(limits_.max_waiting) + " sequences wait already, which is as many as max_waiting lets wait; try again " +
                                    (ms < 0 ? "later" : "in about " + std::to_string(static_cast<uint64_t>(std::ceil(ms))) + " ms")};
    }
    if (!slots_->has_free()) return no_free_slot();
    for (ModelRole of : kModelRoles)
        if (models_.cache_of(of)) AUSPEX_TRY(check_pages(of, sequence));
    return {Code::capacity, "others that were parked come before it; try again later"};
}

bool Admission::all_are_idle() const {
    return std::none_of(sequences_.begin(), sequences_.end(), [](const auto& entry) { return entry.second.slot && entry.second.stop == StopReason::none && !entry.second.holds(); });
}

bool Admission::may_come_in(const LiveSequence& sequence) const {
    // Two that push each other out would never end: it comes back when somebody is done.
    if (sequence.n_parked > 0 && sequence.parked_at == n_ended_ && !all_are_idle()) return false;
    return check_pages(ModelRole::target, sequence).ok() &&
           (!models_.draft_cache() || !text_depends_on_drafts(sequence.request) || check_pages(ModelRole::draft, sequence).ok());
}

// A sequence that has ended and was not destroyed keeps its slot only as long as nobody else wants it.
bool Admission::park_one_that_is_over() {
    LiveSequence* sequence = least_missed();
    if (!sequence || !sequence->is_over()) return false;
    if (is_awaited(sequence->id) && !all_are_idle()) return false; // its forks come in one after the other, as long as somebody makes way for them
    unseat(*sequence);
    return true;
}

void Admission::let_in() {
    for (auto at = waiting_.order().begin(); at != waiting_.order().end();) {
        LiveSequence& sequence = sequences_.at((at++)->second);
        if (sequence.fork_of != 0 && !sequences_.at(sequence.fork_of).slot) continue; // its source waits, too
        while (!slots_->has_free() || !may_come_in(sequence))
            if ((limits_.max_waiting == 0 && sequence.n_parked == 0) || !park_one_that_is_over()) return;
        leave_waiting(sequence);
        sequence.slot = &slots_->take();
        sequence.drafts_are_off = models_.draft_cache() && !check_pages(ModelRole::draft, sequence).ok();
    }
}

// ---- pages

uint32_t Admission::pages_for(ModelRole of, uint64_t n_rows) const {
    const CacheShape& shape = models_.cache_of(of)->shape();
    return static_cast<uint32_t>(ceil_div(std::min<uint64_t>(n_rows, shape.max_rows), uint64_t{shape.page_size}));
}

uint32_t Admission::may_take_soon(ModelRole of, const LiveSequence& sequence) const {
    if (of == ModelRole::draft && !sequence.names_model()) return 0;
    const uint32_t page_size = models_.cache_of(of)->shape().page_size;
    const bool only_reads = sequence.holds() || sequence.stop != StopReason::none;
    const uint64_t n_tokens = sequence.tokens.size();
    uint64_t rows = n_tokens - 1;
    if (!only_reads) {
        const uint64_t round = limits_.max_draft_len + 1, left = sequence.tokens_left(limits_.max_context);
        rows = n_tokens + round + std::min<uint64_t>(page_size, left);
    }
    // Full pages of the source are shared. Of how many rows of the draft's nobody knows until they are.
    const uint32_t has = sequence.fork_of != 0 && of == ModelRole::target ? sequence.fork_rows / page_size : sequence.slot ? sequence.slot->pages_of(of).size() : 0;
    const uint32_t most = pages_for(of, rows);
    return most - std::min(most, has);
}

Status Admission::check_pages(ModelRole of, const LiveSequence& newcomer) const {
    uint64_t promised = 0;
    for (const auto& [id, sequence] : sequences_)
        if (&sequence != &newcomer && sequence.slot && (sequence.stop == StopReason::none || is_awaited(id))) promised += may_take_soon(of, sequence);
    const PagePool& pool = models_.cache_of(of)->pool();
    const uint64_t wanted = may_take_soon(of, newcomer), available = pool.n_available();
    if (wanted + promised <= available) return ok_status();
    return {Code::capacity, "the sequence needs " + std::to_string(wanted) + " pages of the " + name_of(of) + "'s cache to begin, and " +
                                std::to_string(available - std::min(promised, available)) + " of its " + std::to_string(pool.n_pages()) +
                                " are neither used nor promised; destroy a sequence or shorten the prompt"};
}

LiveSequence* Admission::longest_optional_draft() {
    LiveSequence* longest = nullptr;
    for (auto& [id, sequence] : sequences_) {
        if (!sequence.slot || text_depends_on_drafts(sequence.request)) continue;
        const auto size = [](const LiveSequence& of) { return of.slot->pages_of(ModelRole::draft).size(); };
        if (size(sequence) > (longest ? size(*longest) : 0)) longest = &sequence;
    }
    return longest;
}

LiveSequence* Admission::least_missed() {
    LiveSequence* found = nullptr;
    // Who is over goes first, then the less urgent, then the younger.
    const auto rank = [&](const LiveSequence& sequence) {
        const bool is_over = sequence.is_over();
        return std::tuple(is_awaited(sequence.id) ? 2 : is_over ? 0 : 1, -sequence.request.priority, is_over ? static_cast<int64_t>(sequence.last_turn) : -static_cast<int64_t>(sequence.came_ns), -static_cast<int64_t>(sequence.id));
    };
    for (auto& [id, sequence] : sequences_)
        if (sequence.slot && (!found || rank(sequence) < rank(*found))) found = &sequence;
    return found;
}

void Admission::make_room(ModelRole of, uint32_t n_pages) {
    PagePool& pool = models_.cache_of(of)->pool();
    while (pool.n_available() < n_pages) {
        if (LiveSequence* drafts = of == ModelRole::draft ? longest_optional_draft() : nullptr) {
            drafts->drafts_are_off = true;
            drafts->planned = false;
            drafts->draft_rows = 0;
            slots_->give_up(*drafts->slot, of, turns_->last_number());
            continue;
        }
        LiveSequence* sequence = least_missed();
        if (!sequence) return;
        const bool comes_back = !sequence->is_over() && !dying_.contains(sequence->id);
        LiveSequence& parked = *sequence;
        unseat(parked);
        if (comes_back) enter_waiting(parked);
    }
}

} // namespace auspex
