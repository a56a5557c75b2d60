// Records the transforms in their order.
#include "kernels/transforms.h"

namespace auspex {

BufferView record_transforms(Recorder& to, BufferView logits, const TransformBuffers& b, const VocabShape& shape, const TransformForm& form) {
    if (form.edits_logits) {
        record_edit_logits(to, {logits, b.state, b.history, b.target_rows, b.biases}, shape, form.history_stride);
        to.cmd.barrier();
    }
    if (!form.truncation.any()) return {};
    record_truncate(to, {logits, b.state, b.scratch, b.cuts}, shape, form.truncation);
    to.cmd.barrier();
    return b.cuts;
}

} // namespace auspex
