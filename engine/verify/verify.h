// K drafts into K + 1 rows of target logits in one pass, reduced to one choice per row. It decides nothing.
#pragma once

#include "kernels/transforms.h"
#include "model/llama_forward.h"
#include "sequence/sequence.h"

namespace auspex {

struct VerifyBuffers {
    BufferView rows;        // (batch, draft_len + 1) Row
    BufferView counts;      // 3 uint: attention grid
    BufferView state;       // (slots) SlotState
    BufferView round_slots; // (batch) RoundSlot
    BufferView logits;      // (batch, draft_len + 1, vocab) f32, or as many BestTokens as fit
    BufferView partials;    // (batch · (draft_len + 1), vocab_chunks(vocab)) VocabChoice
    BufferView choices;     // (batch, draft_len + 1) VocabChoice
    TransformBuffers transforms = {}; // of (batch · (draft_len + 1)) rows
};

// The target pass with head, transforms and reduction. logits_use: by any entry; unless it is all, no logits are kept or transformed.
// slice_layers as Pass has it; with it the head has a segment of its own.
void record_verify(Recorder& to, const LlamaModel& target, const VerifyBuffers& buffers, uint32_t draft_len, uint32_t batch,
                   LogitsUse logits_use, const TransformForm& transforms, uint32_t slice_layers);

} // namespace auspex
