// Drafts found in the text itself (n-grams, lookup): propose.comp looks for the next round's after each round, where accept_commit says that
// it may find something. Which of the two a slot uses is its SlotState's `search`.
#pragma once

#include "round_state/round_pass.h"

namespace auspex {

void record_search(Recorder& to, const RoundPass& round);

} // namespace auspex
