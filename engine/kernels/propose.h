// Drafts by search over the text of each slot that asks for it, for its next round.
#pragma once

#include "kernels/kernel_library.h"

namespace auspex {

struct ProposeBuffers {
    BufferView batch;   // (batch) uint: slot of each entry, kNoSlot pads
    BufferView state;   // (slots) SlotState
    BufferView history; // (slots, history_stride) uint
    BufferView records; // (batch) RoundRecord: match_len
    BufferView counts;  // see rows_args.h: which entries
    BufferView index;   // (slots, 1 + index_words) uint
};

// For the entries that accept_commit asks for.
void record_propose(Recorder& to, const ProposeBuffers& buffers, uint32_t history_stride);

} // namespace auspex
