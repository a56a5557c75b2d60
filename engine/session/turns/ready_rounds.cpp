// Asks the queue of turns, which knows what is compiled and recorded.
#include "session/turns/ready_rounds.h"

#include <algorithm>

namespace auspex {

namespace {
constexpr uint32_t kShortDrafts = 4;
} // namespace

void ReadyRounds::begin_choice() {
    records_idle_ = refused_;
    refused_ = false;
}

bool ReadyRounds::is_ready(const RoundForm& form) {
    if (form.model_drafts && !draft_can_begin()) return false;
    const TurnKey round = {.kind = TurnKind::round, .round = form};
    if (!turns_->is_compiled(round)) return false;
    if (records_idle_ || !turns_->idle() || turns_->is_recorded(round)) return true;
    refused_ = true;
    return false;
}

bool ReadyRounds::draft_can_begin() {
    if (draft_can_begin_) return true;
    const std::vector<TurnKey> needed = catch_up_turns(limits_);
    draft_can_begin_ = std::all_of(needed.begin(), needed.end(), [&](const TurnKey& key) { return turns_->is_compiled(key); });
    return draft_can_begin_;
}

Status ReadyRounds::ask_for(RoundForm form, bool by_model, bool by_others, uint32_t draft_len) {
    by_model = by_model && limits_.has_draft;
    if (!(by_model || by_others) || turns_->is_compiling()) return ok_status();
    uint32_t& asked = asked_[{form, by_model, by_others}];
    if (asked == limits_.max_draft_len || (asked > 0 && draft_len < kShortDrafts)) return ok_status();
    std::vector<TurnKey> keys;
    if (by_model && asked == 0) keys = catch_up_turns(limits_);
    if (form.searches && form.batch > 1 && asked == 0) keys.push_back({.kind = TurnKind::round, .round = without_search(form)});
    const uint32_t shortest = asked + 1;
    asked = asked == 0 ? std::min(kShortDrafts, limits_.max_draft_len) : limits_.max_draft_len;
    for (const bool model_drafts : {true, false}) {
        if (!(model_drafts ? by_model : by_others)) continue;
        form.model_drafts = model_drafts;
        for (form.draft_len = shortest; form.draft_len <= asked; ++form.draft_len) keys.push_back({.kind = TurnKind::round, .round = form});
    }
    return turns_->prepare_later(keys);
}

} // namespace auspex
