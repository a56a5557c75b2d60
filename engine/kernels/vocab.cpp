// Records the reductions over the vocabulary.
#include "kernels/vocab.h"

#include "base/checked.h"
#include "shared/vocab_args.h"

namespace auspex {

namespace {

void record_pick_rows(Recorder& to, BufferView partials, const DraftPick& out, uint32_t n_rows, gpu::PickArgs args) {
    const Kernel* kernel = to.kernel({"pick", 6, sizeof(gpu::PickArgs), true, {to.tuning().lanes}});
    if (!kernel) return;
    args.with_cuts = out.cuts.buffer ? 1u : 0u;
    to.cmd.dispatch(*kernel, {n_rows, 1, 1}, args,
                    {partials, out.choices, out.target_rows, out.draft_rows, out.round_slots, out.cuts.buffer ? out.cuts : partials});
}

} // namespace

uint32_t vocab_chunks(uint32_t vocab) {
    return ceil_div(vocab, gpu::kVocabChunk);
}

void record_vocab_partials(Recorder& to, BufferView logits, BufferView state, BufferView round_slots, BufferView partials,
                           const VocabShape& shape) {
    const Kernel* kernel = to.kernel({"vocab_partials", 5, sizeof(gpu::VocabPartialsArgs), true, {to.tuning().lanes}});
    if (!kernel) return;
    uint32_t n_chunks = vocab_chunks(shape.vocab);
    to.cmd.dispatch(*kernel, {n_chunks, shape.n_rows, 1},
                    gpu::VocabPartialsArgs{.vocab = shape.vocab,
                                           .n_chunks = n_chunks,
                                           .rows_per_slot = shape.rows_per_slot,
                                           .first_offset = shape.first_offset,
                                           .logits_first = shape.logits_first,
                                           .logits_step = shape.logits_step,
                                           .of_draft = shape.of_draft ? 1u : 0u,
                                           .with_cuts = shape.cuts.buffer ? 1u : 0u},
                    {logits, state, round_slots, partials, shape.cuts.buffer ? shape.cuts : round_slots});
}

void record_pick(Recorder& to, BufferView partials, BufferView choices, uint32_t n_rows, uint32_t vocab, BufferView cuts) {
    record_pick_rows(to, partials, {choices, choices, choices, choices, cuts}, n_rows, 
                     {.n_chunks = vocab_chunks(vocab), .forward = 0, .step = 0, .batch = 0, .draft_len = 0, .choice_first = 0, .choice_step = 1, .with_cuts = 0});
}

void record_pick_draft(Recorder& to, BufferView partials, const DraftPick& to_rows, uint32_t vocab, uint32_t batch, uint32_t step,
                       uint32_t draft_len) {
    record_pick_rows(to, partials, to_rows, batch,
                     {.n_chunks = vocab_chunks(vocab), .forward = 1, .step = step, .batch = batch, .draft_len = draft_len, .choice_first = step, .choice_step = draft_len, .with_cuts = 0});
}

} // namespace auspex
