// Logits to one choice per row: argmax, temperature softmax sums, Gumbel-argmax sampling of drafts.
#pragma once

#include "kernels/kernel_library.h"
#include "shared/vocab_args.h"

namespace auspex {

namespace ops {
struct VocabPartials {
    static constexpr std::string_view kShader = "vocab_partials";
    using Args = gpu::VocabPartialsArgs;
    struct Bindings {
        BufferView logits, state, rows, partials, cuts;
    };
};

struct Pick {
    static constexpr std::string_view kShader = "pick";
    using Args = gpu::PickArgs;
    struct Bindings {
        BufferView partials, choices, target_rows, draft_rows, round_slots, cuts;
    };
};
} // namespace ops

uint32_t vocab_chunks(uint32_t vocab);

// Rows of logits, and the Row that each comes from: slot, position and context of the token that it chooses.
struct VocabShape {
    uint32_t vocab;
    uint32_t n_rows;
    BufferView rows;           // Row: of row r the one at first_row + r · row_step; those that are not live are left out
    uint32_t first_row = 0;
    uint32_t row_step = 1;
    uint32_t first_logits = 0; // row r lies at row first_logits + r · logits_step of the logits
    uint32_t logits_step = 1;
    bool of_draft = false;     // rows with temperature are sampled, not maximised
    BufferView cuts = {};      // (n_rows) Cut; none: every logit takes part
};
// To an op's arguments.
template <typename Args> void set_logits_rows(Args& args, const VocabShape& shape) {
    args.vocab = shape.vocab;
    args.n_chunks = vocab_chunks(shape.vocab);
    args.first_row = shape.first_row;
    args.row_step = shape.row_step;
    args.first_logits = shape.first_logits;
    args.logits_step = shape.logits_step;
}

// logits: rows of (vocab) f32; state: (slots) SlotState; partials: (n_rows, vocab_chunks(vocab)) VocabChoice.
void record_vocab_partials(Recorder& to, BufferView logits, BufferView state, BufferView partials, const VocabShape& shape);

// Reduces the chunks of n_rows rows into choices: (n_rows) VocabChoice. cuts: as in VocabShape.
void record_pick(Recorder& to, BufferView partials, BufferView choices, uint32_t n_rows, uint32_t vocab, BufferView cuts = {});

// Reduces what record_best_tokens has left: n_bests per row.
void record_pick_best(Recorder& to, BufferView bests, BufferView choices, uint32_t n_rows, uint32_t n_bests);

struct DraftPick {
    BufferView choices;          // (batch, draft_len) VocabChoice
    BufferView target_rows = {}; // (batch, nodes) Row, which receive the tokens; see shared/round_rows.h
    BufferView draft_rows = {};  // regions of Row, which too
    BufferView round_slots = {}; // (batch) RoundSlot: entries whose drafts were proposed keep those
    BufferView cuts = {};        // (batch) Cut; none: every logit took part
};
// The same for what follows node `node` of every batch entry.
void record_pick_draft(Recorder& to, BufferView partials, const DraftPick& to_rows, uint32_t vocab, uint32_t batch, uint32_t node,
                       uint32_t draft_len);
void record_pick_best_draft(Recorder& to, BufferView bests, const DraftPick& to_rows, uint32_t n_bests, uint32_t batch, uint32_t node,
                            uint32_t draft_len);

} // namespace auspex
