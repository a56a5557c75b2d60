// Everything between the head and the first reduction over the vocabulary: edit_logits, then truncate, for rows of drafts and
// of the target alike.
#pragma once

#include "kernels/edit_logits.h"
#include "kernels/truncate.h"

namespace auspex {

struct TransformBuffers {
    BufferView state;       // (slots) SlotState
    BufferView history;     // (slots, history_stride) uint
    BufferView target_rows; // (batch, nodes) Row
    BufferView biases;      // (slots, kMaxBiases) TokenBias
    BufferView scratch;     // (n_rows, truncate_words(vocab)) uint
    BufferView cuts;        // (n_rows) Cut
};

struct TransformForm {
    bool edits_logits = false;
    Truncation truncation = {};
    uint32_t history_stride = 0;
};

// Records what the form asks for, and a barrier after each. The cuts to give to the reductions, or none.
BufferView record_transforms(Recorder& to, BufferView logits, const TransformBuffers& buffers, const VocabShape& shape, const TransformForm& form);

} // namespace auspex
