// The host's side of shaders/shared/round_rows.h.
#include "round_state/round_pass.h"

namespace auspex {

uint32_t RoundPass::draft_slice_layers() const {
    const auto parts = static_cast<uint32_t>(ceil_div(n_slices * models.draft->weights().bytes(), models.target.weights().bytes()));
    return models.draft->slice_layers(parts > 1 ? parts : 0); // one is not worth a cut
}

VocabShape RoundPass::target_logits() const {
    return {.vocab = models.target.config().vocab_size, .n_rows = form.batch * form.n_nodes(), .rows = buffers.target_rows.view()};
}

VocabShape RoundPass::draft_logits(uint32_t node) const {
    const uint32_t draft_len = form.draft_len;
    return {.vocab = models.draft->config().vocab_size,
            .n_rows = form.batch,
            .rows = draft_rows(node),
            .first_row = gpu::draft_pass_row(draft_lead(), 0, node),
            .row_step = gpu::draft_pass_rows_per_entry(draft_lead(), node),
            .first_logits = gpu::draft_row_of(draft_len, 0, node),
            .logits_step = gpu::draft_row_of(draft_len, 1, 0),
            .of_draft = true};
}

BufferView RoundPass::draft_rows(uint32_t node) const {
    const uint64_t first = gpu::draft_pass_first_row(form.batch, node), n = uint64_t{form.batch} * gpu::draft_pass_rows_per_entry(draft_lead(), node);
    return buffers.draft_rows.view(first * sizeof(gpu::Row), n * sizeof(gpu::Row));
}

BufferView RoundPass::record_transforms(Recorder& to, BufferView logits, const VocabShape& shape) const {
    const RoundBuffers& b = buffers;
    const TransformBuffers with = {.state = b.state.view(),
                                   .history = b.history.view(),
                                   .target_rows = b.target_rows.view(),
                                   .biases = b.biases.view(),
                                   .scratch = b.truncate_scratch.view(),
                                   .cuts = b.cuts.view()};
    return auspex::record_transforms(to, logits, with, shape, {form.edits_logits, form.truncation, b.history_stride});
}

LogprobBuffers RoundPass::logprob_buffers() const {
    const RoundBuffers& b = buffers;
    return {.logits = b.target_logits.view(),
            .state = b.state.view(),
            .history = b.history.view(),
            .target_rows = b.target_rows.view(),
            .round_slots = b.round_slots.view(),
            .biases = b.biases.view(),
            .partials = b.logprob_partials.view(),
            .kept = b.kept_logits.view(),
            .logprobs = turn.logprobs.view()};
}

} // namespace auspex
