// Drafts by a small Llama: K passes of one row per slot, each followed by a pick that feeds the next. The first pass
// carries two rows per slot, because full acceptance leaves the draft cache one row short (t_K was never fed to it).
#pragma once

#include "kernels/transforms.h"
#include "model/llama_forward.h"
#include "sequence/sequence.h"

namespace auspex {

struct DraftBuffers {
    BufferView rows;        // regions of Row, see draft_pass_first_row
    BufferView target_rows; // (batch, draft_len + 1) Row, which wait for the drafts
    BufferView counts_first, counts_next; // 3 uint each: attention grids
    BufferView state;       // (slots) SlotState
    BufferView round_slots; // (batch) RoundSlot
    BufferView logits;      // (batch, draft_len, vocab) f32: what the drafts were sampled from, penalties and biases included; or BestTokens
    BufferView partials;    // (batch, vocab_chunks(vocab)) VocabChoice
    BufferView choices;     // (batch, draft_len) VocabChoice
    TransformBuffers transforms = {}; // of (batch) rows
};

// Draft `step` of 0 … draft_len - 1 for every batch entry. logits_use: by any entry that the model drafts for; unless it is all, no
// logits are kept. slice_layers as Pass has it; with it the head has a segment of its own.
void record_draft_step(Recorder& to, const LlamaModel& draft, const DraftBuffers& buffers, uint32_t step, uint32_t draft_len,
                       uint32_t batch, LogitsUse logits_use, const TransformForm& transforms, uint32_t slice_layers);

} // namespace auspex
