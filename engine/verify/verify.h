// K drafts into K + 1 rows of target logits in one pass, reduced to one choice per row. It decides nothing.
#pragma once

#include "round_state/round_pass.h"

namespace auspex {

// The target pass over all nodes with head, transforms and reduction, and what log-probabilities take of the logits before the transforms.
// Where the form keeps no logits of the target, none are transformed. In a sliced round the head has a segment of its own.
void record_verify(Recorder& to, const RoundPass& round);

} // namespace auspex
