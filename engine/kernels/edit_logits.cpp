// Records penalties and biases.
#include "kernels/edit_logits.h"

namespace auspex {

void record_edit_logits(Recorder& to, const EditLogitsBuffers& b, const VocabShape& shape, uint32_t history_stride) {
    const auto kernel = to.kernel<ops::EditLogits>({.constants = {to.tuning().vocab_threads}});
    if (!kernel) return;
    gpu::EditLogitsArgs args = {};
    set_logits_rows(args, shape);
    args.history_stride = history_stride;
    to.cmd.dispatch(kernel, {args.n_chunks, shape.n_rows, 1}, args,
                    {.logits = b.logits, .state = b.state, .rows = shape.rows, .history = b.history, .target_rows = b.target_rows, .biases = b.biases});
}

} // namespace auspex
