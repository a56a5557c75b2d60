// Logits to one choice per row: argmax, temperature softmax sums, Gumbel-argmax sampling of drafts.
#pragma once

#include "kernels/kernel_library.h"

namespace auspex {

uint32_t vocab_chunks(uint32_t vocab);

struct VocabShape {
    uint32_t vocab;
    uint32_t n_rows;
    uint32_t rows_per_slot; // rows of batch entry b are b · rows_per_slot …
    uint32_t first_offset;  // row j of an entry samples the token of position start + first_offset + j
    bool of_draft;          // rows with temperature are sampled, not maximised
    uint32_t logits_first = 0; // row r lies at row logits_first + r · logits_step of the logits
    uint32_t logits_step = 1;
    BufferView cuts = {};   // (n_rows) Cut; none: every logit takes part
};

// logits: rows of (vocab) f32; state: (slots) SlotState; round_slots: (batch) RoundSlot;
// partials: (n_rows, vocab_chunks(vocab)) VocabChoice.
void record_vocab_partials(Recorder& to, BufferView logits, BufferView state, BufferView round_slots, BufferView partials,
                           const VocabShape& shape);

// Reduces the chunks of n_rows rows into choices: (n_rows) VocabChoice. cuts: as in VocabShape.
void record_pick(Recorder& to, BufferView partials, BufferView choices, uint32_t n_rows, uint32_t vocab, BufferView cuts = {});

// Reduces what record_best_tokens has left: n_bests per row.
void record_pick_best(Recorder& to, BufferView bests, BufferView choices, uint32_t n_rows, uint32_t n_bests);

struct DraftPick {
    BufferView choices;     // (batch, draft_len) VocabChoice
    BufferView target_rows; // (batch, draft_len + 1) Row, which receive the tokens
    BufferView draft_rows;  // regions of Row, see draft_pass_first_row; which too
    BufferView round_slots; // (batch) RoundSlot: entries whose drafts were proposed keep those
    BufferView cuts = {};   // (batch) Cut; none: every logit took part
};
// The same for draft `step` of every batch entry.
void record_pick_draft(Recorder& to, BufferView partials, const DraftPick& to_rows, uint32_t vocab, uint32_t batch, uint32_t step,
                       uint32_t draft_len);
void record_pick_best_draft(Recorder& to, BufferView bests, const DraftPick& to_rows, uint32_t n_bests, uint32_t batch, uint32_t step,
                            uint32_t draft_len);

} // namespace auspex
