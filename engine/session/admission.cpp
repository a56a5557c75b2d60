// A sequence that is let in runs to its end: pages that it may need are promised to nobody else.
#include "session/admission.h"

#include <algorithm>

namespace auspex {

Status Admission::no_free_slot() const {
    return {Code::capacity, "all " + std::to_string(slots_->n_slots()) + " sequences of this engine are in use; destroy one or raise max_sequences"};
}

LiveSequence& Admission::add(SequenceRequest request, std::vector<uint32_t> tokens, const Tokenizer* tokenizer) {
    const uint64_t id = next_id_++;
    LiveSequence& sequence = sequences_[id];
    sequence.id = id;
    sequence.slot = &slots_->take();
    sequence.request = std::move(request);
    sequence.tokens = std::move(tokens);
    sequence.prompt_n = static_cast<uint32_t>(sequence.tokens.size());
    sequence.created_ns = now_ns();
    if (tokenizer) sequence.stream.emplace(*tokenizer, false);
    return sequence;
}

Result<uint64_t> Admission::create(SequenceRequest request, const Tokenizer* tokenizer) {
    if (!slots_->has_free()) return no_free_slot();
    AUSPEX_TRY(check_pages({.by_model = request.names_model(), .max_tokens = request.max_tokens, .n_tokens = request.prompt.size()}));
    std::vector<uint32_t> tokens = request.prompt;
    LiveSequence& sequence = add(std::move(request), std::move(tokens), tokenizer);
    sequence.prompt_rows.add(0, sequence.rows_to_prefill());
    return sequence.id;
}

Result<uint64_t> Admission::fork(uint64_t source_id, SequenceRequest request, const Tokenizer* tokenizer) {
    LiveSequence* source = find(source_id);
    if (!source) return Status(Code::invalid_argument, "fork of a sequence that does not exist");
    if (source->tokens.size() >= max_context_) return Status(Code::capacity, "fork of a sequence whose context is full");
    if (!slots_->has_free()) return no_free_slot();
    // A source that was itself not copied yet passes its own source on.
    const uint32_t rows = source->fork_of ? source->fork_rows : static_cast<uint32_t>(source->tokens.size()) - 1;
    AUSPEX_TRY(check_pages({.by_model = request.names_model(), .max_tokens = request.max_tokens, .n_tokens = source->tokens.size(), .shared_rows = rows}));
    LiveSequence& sequence = add(std::move(request), source->tokens, tokenizer);
    sequence.prompt_rows = source->prompt_rows;
    sequence.fork_of = source->fork_of ? source->fork_of : source_id;
    sequence.fork_rows = rows;
    return sequence.id;
}

Status Admission::append(uint64_t id, SequenceRequest request, const Tokenizer* tokenizer) {
    LiveSequence* sequence = find(id);
    if (!sequence) return {Code::invalid_argument, "append to a sequence that does not exist"};
    if (sequence->stop == StopReason::none && !sequence->holds())
        return {Code::invalid_argument, "append to a sequence that is still running; wait for its end or cancel it"};
    const uint64_t n = sequence->tokens.size() + uint64_t(request.prompt.size());
    if (n >= max_context_)
        return {Code::capacity, "the sequence has " + std::to_string(sequence->tokens.size()) + " tokens and " + std::to_string(request.prompt.size()) +
                                    " were to follow, which leaves no room in the context of " + std::to_string(max_context_) +
                                    "; append less or raise the context"};
    AUSPEX_TRY(check_pages({.by_model = request.names_model(), .max_tokens = request.max_tokens, .n_tokens = n, .shared_rows = sequence->fork_rows, .of = sequence}));
    sequence->append(std::move(request), tokenizer, now_ns());
    sequence->slot->is_told = false;
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
    slots_->tell_end(*sequence->slot);
    return ok_status();
}

Status Admission::set_draft_len(uint64_t id, uint32_t draft_len) {
    LiveSequence* sequence = find(id);
    if (!sequence) return {Code::invalid_argument, "the sequence does not exist"};
    sequence->request.draft_len = draft_len;
    sequence->planned = false;
    slots_->tell_search_len(*sequence->slot, draft_len);
    return ok_status();
}

Status Admission::destroy(uint64_t id) {
    LiveSequence* sequence = find(id);
    if (!sequence) return {Code::invalid_argument, "the sequence does not exist"};
    AUSPEX_TRY(cancel(id));
    if (is_awaited(id)) dying_.insert(id);
    else release(*sequence);
    return ok_status();
}

bool Admission::is_awaited(uint64_t id) const {
    return std::any_of(sequences_.begin(), sequences_.end(), [&](const auto& other) { return other.second.fork_of == id; });
}

void Admission::forks_are_copied(uint64_t source) {
    if (dying_.contains(source) && !is_awaited(source)) release(sequences_.at(source));
}

void Admission::release(LiveSequence& sequence) {
    slots_->give_back(*sequence.slot, turns_->last_number());
    dying_.erase(sequence.id);
    sequences_.erase(sequence.id);
}

uint64_t Admission::pages_for(ModelRole of, uint64_t n_rows) const {
    const CacheShape& shape = models_.cache_of(of)->shape();
    return ceil_div(std::min<uint64_t>(n_rows, shape.max_rows), uint64_t{shape.page_size});
}

uint64_t Admission::may_take(ModelRole of, const Part& part) const {
    if (of == ModelRole::draft && !part.by_model) return 0;
    uint64_t rows = part.n_tokens - 1; // of a prompt that is only read
    if (part.max_tokens != kHoldTokens) {
        const uint64_t rows_under_way = 2 * (uint64_t{max_draft_len_} + 1);
        rows = std::min<uint64_t>(max_context_, part.n_tokens + (part.max_tokens == 0 ? max_context_ : part.max_tokens)) + rows_under_way;
    }
    // Full pages of the source are shared. Of how many rows of the draft's nobody knows until they are.
    const bool will_share = of == ModelRole::target && part.shared_rows > 0 && (!part.of || part.of->fork_of != 0);
    const uint64_t has = will_share ? part.shared_rows / models_.cache_of(of)->shape().page_size : part.of ? part.of->slot->pages_of(of).size() : 0;
    const uint64_t most = pages_for(of, rows);
    return most - std::min(most, has);
}

uint64_t Admission::promised(ModelRole of, const LiveSequence* but_for) const {
    uint64_t pages = 0;
    for (const auto& [id, sequence] : sequences_) {
        if (&sequence == but_for) continue;
        const bool is_over = sequence.stop != StopReason::none;
        if (is_over && !is_awaited(id)) continue;
        const uint32_t max_tokens = is_over ? kHoldTokens : sequence.request.max_tokens; // forks wait for its prompt
        pages += may_take(of, {sequence.request.names_model(), max_tokens, sequence.prompt_n, sequence.fork_rows, &sequence});
    }
    return pages;
}

Status Admission::check_pages(const Part& part) const {
    for (ModelRole of : kModelRoles) {
        if (!models_.cache_of(of)) continue;
        const PagePool& pool = models_.cache_of(of)->pool();
        const uint64_t wanted = may_take(of, part), taken = promised(of, part.of), available = pool.n_available();
        if (wanted + taken > available)
            return {Code::capacity, "the sequence may need " + std::to_string(wanted) + " pages of the " + (of == ModelRole::target ? "target" : "draft") + "'s cache, and " +
                                        std::to_string(available - std::min(taken, available)) + " of its " + std::to_string(pool.n_pages()) +
                                        " are neither used nor promised; destroy a sequence, or ask for fewer max_tokens"};
    }
    return ok_status();
}

} // namespace auspex
