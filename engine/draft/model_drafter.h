// Drafts by a small Llama: K passes of one row per slot, each followed by a pick that feeds the next. The first pass
// carries two rows per slot, because full acceptance leaves the draft cache one row short (t_K was never fed to it).
#pragma once

#include "round_state/round_pass.h"

namespace auspex {

// The draft that follows `node`, 0 … draft_len - 1, of every batch entry: pass, head, transforms, pick. Its token goes to the rows of the
// node after it. Where the form's logits_use is not all, no logits are kept. In a sliced round the head has a segment of its own.
void record_draft_step(Recorder& to, const RoundPass& round, uint32_t node);

} // namespace auspex
