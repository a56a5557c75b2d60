// What drafts could win at best, or win usually: whether they are worth a probe, or a bonus to begin with.
#pragma once

#include "session/speculation/best_shape.h"
#include "session/speculation/speculating_sequence.h"

#include <span>

namespace auspex {

// Whether the group could win with drafts as good as any are, or as its own are known to be if those are better. drafting: a round
// with the group's choices.
bool could_win(std::span<const SpeculatingSequence> group, const Candidate& plain, const Candidate& drafting, uint32_t max_draft_len, const CostModel& costs);

// Whether the group could win with proposals for all whose texts are searched, as good as any drafts are. is_searched: it is being done
// now, and goes on as long as they could.
bool proposals_could_win(std::span<const SpeculatingSequence> group, const Candidate& plain, uint32_t max_draft_len, const CostModel& costs, bool is_searched);

// Whether one sequence whose drafts by the model are accepted with probability alpha wins by some draft_len.
bool usually_wins(double alpha, const RoundShape& base, uint32_t max_draft_len, const CostModel& costs);

} // namespace auspex
