// What the GPU's tables hold of a sequence, and when it is told.
#include "session/slots/slots.h"

#include <algorithm>

namespace auspex {

namespace {
constexpr uint32_t kCommandReserve = 512; // room that one more slot's pages and state may take
} // namespace

Slots::Slots(RoundModels models, Limits limits) : models_(models), limits_(std::move(limits)), writer_(limits_.max_commands) {
    for (uint32_t i = 0; i < limits_.n_slots; ++i) {
        Slot& slot = slots_.emplace_back(Slot{.number = i, .pages = {}});
        for (ModelRole of : kModelRoles)
            if (KvCache* cache = models_.cache_of(of)) slot.pages.push_back(cache->new_list());
    }
    for (auto slot = slots_.rbegin(); slot != slots_.rend(); ++slot) free_.push_back(&*slot);
}

Slot& Slots::take() {
    Slot& slot = *free_.back();
    free_.pop_back();
    slot.is_told = false;
    return slot;
}

void Slots::give_back(Slot& slot, uint64_t turn) {
    keep(slot, 0, turn);
    free_.push_back(&slot);
}

Status Slots::lend(ModelRole of, uint32_t n_rows, const Use& use) {
    Slot& slot = take();
    std::vector<PageChange> pages;
    Status status = slot.pages_of(of).grow(n_rows, pages);
    if (status.ok()) status = use(slot.number, pages);
    else status = {Code::capacity, std::to_string(n_rows) + " tokens were to be evaluated, and the cache has fewer free pages than they need; destroy a sequence"};
    give_back(slot, 0);
    collect(0);
    return status;
}

Status Slots::map(Slot& slot, ModelRole of, uint32_t n_rows) {
    std::vector<PageChange> changes;
    AUSPEX_TRY(slot.pages_of(of).grow(std::min(n_rows, models_.cache_of(of)->shape().max_rows), changes));
    writer_.pages(of, slot.number, changes);
    return ok_status();
}

void Slots::keep(Slot& slot, uint32_t n_rows, uint64_t turn) {
    for (PageList& pages : slot.pages) pages.shrink(n_rows, turn);
}

Status Slots::share(const Slot& from, Slot& to, ModelRole of, uint32_t n_rows, std::vector<CacheCopy>& copies) {
    if (n_rows == 0) return ok_status();
    std::vector<PageChange> changes;
    std::vector<PageCopy> pages;
    AUSPEX_TRY(to.pages_of(of).share(from.pages_of(of), n_rows, changes, pages));
    writer_.pages(of, to.number, changes);
    for (const PageCopy& copy : pages) copies.push_back({of, copy});
    return ok_status();
}

void Slots::adopt(Slot& slot, ModelRole of, std::span<const uint32_t> pages, uint64_t turn) {
    std::vector<PageChange> changes;
    slot.pages_of(of).adopt(pages, turn, changes);
    writer_.pages(of, slot.number, changes);
}

void Slots::record_copies(Recording& cmd, std::span<const CacheCopy> copies) const {
    for (const CacheCopy& copy : copies) models_.cache_of(copy.of)->record_copy(cmd, copy.pages);
}

void Slots::collect(uint64_t completed_turn) {
    for (ModelRole of : kModelRoles)
        if (KvCache* cache = models_.cache_of(of)) cache->pool().collect(completed_turn);
}

bool Slots::has_room(const LiveSequence& sequence, uint64_t n_tokens, uint32_t n_tables) const {
    const uint64_t biases = sequence.slot->is_told ? 0 : 2 * sequence.request.sampling.biases.size();
    return writer_.room() >= n_tokens + n_tables * models_.target.cache().pages_per_slot() + kCommandReserve + biases;
}

void Slots::tell(const LiveSequence& sequence) {
    Slot& slot = *sequence.slot;
    if (slot.is_told) return;
    slot.is_told = true;
    slot.drafter = sequence.drafter;
    slot.draft_len = sequence.draft_len;
    writer_.state(slot.number, state_of(sequence));
    writer_.biases(slot.number, sequence.request.sampling.biases);
    tell_tokens(slot, static_cast<uint32_t>(sequence.tokens.size()) - 1, std::span(&sequence.tokens.back(), 1));
}

void Slots::tell_plan(const LiveSequence& sequence) {
    Slot& slot = *sequence.slot;
    if (slot.drafter != sequence.drafter) writer_.state_word(slot.number, AUSPEX_STATE_WORD(drafter), static_cast<uint32_t>(sequence.drafter));
    if (slot.draft_len != sequence.draft_len) writer_.state_word(slot.number, AUSPEX_STATE_WORD(draft_len), sequence.draft_len);
    slot.drafter = sequence.drafter;
    slot.draft_len = sequence.draft_len;
}

void Slots::tell_search_len(const Slot& slot, uint32_t draft_len) {
    if (slot.is_told) writer_.state_word(slot.number, AUSPEX_STATE_WORD(search_len), std::min(draft_len, limits_.max_draft_len));
}

void Slots::tell_proposals(const Slot& slot, std::span<const uint32_t> drafts) {
    for (uint32_t i = 0; i < drafts.size(); ++i) writer_.state_word(slot.number, AUSPEX_STATE_WORD(proposed) + i, drafts[i]);
    writer_.state_word(slot.number, AUSPEX_STATE_WORD(n_proposed), static_cast<uint32_t>(drafts.size()));
}

void Slots::tell_draft_rows(const Slot& slot, uint32_t n_rows) { writer_.state_word(slot.number, AUSPEX_STATE_WORD(draft_cache_len), n_rows); }

void Slots::tell_end(const Slot& slot) {
    if (slot.is_told) writer_.state_word(slot.number, AUSPEX_STATE_WORD(live), 0);
}

gpu::SlotState Slots::state_of(const LiveSequence& sequence) const {
    const SequenceRequest& request = sequence.request;
    gpu::SlotState state = {};
    state.live = sequence.holds() || sequence.stop != StopReason::none ? 0 : 1;
    state.last_token = sequence.tokens.back();
    state.target_len = static_cast<uint32_t>(sequence.tokens.size()) - 1;
    state.draft_cache_len = sequence.draft_rows;
    state.draft_len = sequence.draft_len;
    state.n_generated = sequence.n_generated();
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
    state.drafter = static_cast<uint32_t>(sequence.drafter);
    state.search_len = std::min(request.draft_len, limits_.max_draft_len);
    if (request.searches()) state.search = static_cast<uint32_t>(request.who().proposer);
    state.ngram_max = request.ngram_max;
    state.match_len = sequence.match_len;
    state.n_proposed = static_cast<uint32_t>(sequence.proposed.size());
    std::copy(sequence.proposed.begin(), sequence.proposed.end(), state.proposed);
    state.logprobs = request.with_logprobs != 0 ? 1 + request.n_logprobs : 0;
    state.n_stop = request.ignore_eos ? 0 : static_cast<uint32_t>(limits_.stop_ids.size());
    for (uint32_t i = 0; i < state.n_stop; ++i) state.stop_ids[i] = limits_.stop_ids[i];
    return state;
}

} // namespace auspex
