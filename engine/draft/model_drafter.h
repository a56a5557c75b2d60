// Drafts by a small Llama, or by the target's own weights in fewer bits: K passes of one row per slot, each followed by a pick that feeds
// the next. A draft model's first pass carries two rows per slot, because full acceptance leaves its cache one row short (t_K was never
// fed to it). A copy of the target (QSpec, Zhao et al. 2025, section 3) reads the target's keys and writes rows start, start + 1, … of
// the target's cache; the target's pass of the same round begins at start and writes every one of them again.
#pragma once

#include "round_state/round_pass.h"

namespace auspex {

// The draft that follows `node`, 0 … draft_len - 1, of every batch entry: pass, head, transforms, pick. Its token goes to the rows of the
// node after it. Where the form's logits_use is not all, no logits are kept. In a sliced round the head has a segment of its own.
void record_draft_step(Recorder& to, const RoundPass& round, uint32_t node);

} // namespace auspex
