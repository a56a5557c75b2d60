// Rows are told apart by the path that they took.
#include "session/prefix/beginnings.h"

#include <algorithm>

namespace auspex {

// Rows of [0, n_rows) that whoever has the same tokens would compute by the same kernels: those that took the path of prompts, as
// did all before them. Where both paths are one, any.
uint32_t Beginnings::canonical_rows(const LiveSequence& sequence, uint32_t n_rows) const {
    if (paths_are_one_) return n_rows;
    return sequence.prompt_rows.contains(0) ? std::min(n_rows, sequence.prompt_rows.end_of_path(0)) : 0;
}

void Beginnings::find(LiveSequence& sequence, uint64_t turn) {
    const uint32_t had = sequence.target_rows;
    const PrefixTree::Hit hit = tree_.find(sequence.tokens, had, canonical_rows(sequence, sequence.wanted_rows), sequence.cache_salt);
    const auto rows = static_cast<uint32_t>(hit.target.size()) * page_size_;
    if (rows <= had) return;
    slots_->adopt(*sequence.slot, ModelRole::target, hit.target, turn);
    sequence.target_rows = sequence.target_len = rows;
    sequence.cached_n += rows - had;
    slots_->tell_tokens(*sequence.slot, had, std::span(sequence.tokens).subspan(had, rows - had));
    const uint32_t draft_had = sequence.draft_rows, draft_rows = static_cast<uint32_t>(hit.draft.size()) * page_size_;
    if (!sequence.names_model() || draft_rows <= draft_had) return;
    slots_->adopt(*sequence.slot, ModelRole::draft, hit.draft, turn);
    sequence.draft_rows = draft_rows;
    if (sequence.slot->is_told) slots_->tell_draft_rows(*sequence.slot, draft_rows);
}

void Beginnings::share(const LiveSequence& sequence, ModelRole of, uint32_t n_rows) {
    if (models_.cache_of(of)) tree_.insert(of, sequence.tokens, canonical_rows(sequence, n_rows), sequence.slot->pages_of(of), sequence.cache_salt);
}

void Beginnings::share_all(const LiveSequence& sequence) {
    if (!paths_are_one_ || !sequence.is_prefilled()) return; // rows of prompts were shared when they were read
    share(sequence, ModelRole::target, sequence.target_len); // as far as rounds were read: drafts of those under way may be rejected
    share(sequence, ModelRole::draft, std::min(sequence.draft_rows, sequence.target_len));
}

} // namespace auspex
