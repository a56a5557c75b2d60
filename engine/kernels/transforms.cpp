// Records the transforms in their order.
#include "kernels/transforms.h"

namespace auspex {

BufferView record_transforms(Recorder& to, BufferView logits, const TransformBuffers& b, const VocabShape& shape, const TransformForm& form) {
    if (form.edits_logits) {
        record_edit_logits(to, {.logits = logits, .state = b.state, .history = b.history, .target_rows = b.target_rows, .biases = b.biases}, shape,
                           form.history_stride);
        to.cmd.barrier();
    }
    if (!form.truncation.any()) return {};
    record_truncate(to, {.logits = logits, .state = b.state, .scratch = b.scratch, .cuts = b.cuts}, shape, form.truncation);
    to.cmd.barrier();
    return b.cuts;
}

} // namespace auspex
