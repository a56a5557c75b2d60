// Drafts by search over the text of each slot that asks for it, for its next round.
#pragma once

#include "kernels/kernel_library.h"
#include "shared/propose_args.h"

namespace auspex {

namespace ops {
struct Propose {
    static constexpr std::string_view kShader = "propose";
    using Args = gpu::ProposeArgs;
    struct Bindings {
        BufferView batch;   // (batch) uint: slot of each entry, kNoSlot pads
        BufferView state;   // (slots) SlotState
        BufferView history; // (slots, history_stride) uint
        BufferView records; // (batch) RoundRecord: match_len, n_proposed, proposed
        BufferView counts;  // see rows_args.h: which entries
        BufferView index;   // (slots, 1 + index_words) uint
    };
};
} // namespace ops

// For the entries that accept_commit asks for.
void record_propose(Recorder& to, const ops::Propose::Bindings& buffers, uint32_t history_stride);

} // namespace auspex
