// Records penalties and biases.
#include "kernels/edit_logits.h"

#include "shared/edit_logits_args.h"

namespace auspex {

void record_edit_logits(Recorder& to, const EditLogitsBuffers& b, const VocabShape& shape, uint32_t draft_len, uint32_t history_stride) {
    const Kernel* kernel = to.kernel({"edit_logits", 6, sizeof(gpu::EditLogitsArgs), false, {to.tuning().vocab_threads}});
    if (!kernel) return;
    to.cmd.dispatch(*kernel, {vocab_chunks(shape.vocab), shape.n_rows, 1},
                    gpu::EditLogitsArgs{.vocab = shape.vocab,
                                        .rows_per_slot = shape.rows_per_slot,
                                        .first_offset = shape.first_offset,
                                        .logits_first = shape.logits_first,
                                        .logits_step = shape.logits_step,
                                        .of_draft = shape.of_draft ? 1u : 0u,
                                        .draft_len = draft_len,
                                        .history_stride = history_stride},
                    {b.logits, b.state, b.round_slots, b.history, b.target_rows, b.biases});
}

} // namespace auspex
