// Records penalties and biases.
#include "kernels/edit_logits.h"

#include "shared/edit_logits_args.h"

namespace auspex {

void record_edit_logits(Recorder& to, const EditLogitsBuffers& b, const VocabShape& shape, uint32_t history_stride) {
    const Kernel* kernel = to.kernel({"edit_logits", 6, sizeof(gpu::EditLogitsArgs), false, {to.tuning().vocab_threads}});
    if (!kernel) return;
    gpu::EditLogitsArgs args = {};
    set_logits_rows(args, shape);
    args.history_stride = history_stride;
    to.cmd.dispatch(*kernel, {args.n_chunks, shape.n_rows, 1}, args, {b.logits, b.state, shape.rows, b.history, b.target_rows, b.biases});
}

} // namespace auspex
