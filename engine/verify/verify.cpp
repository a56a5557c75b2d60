// Records the target's part of a round.
#include "verify/verify.h"

#include "shared/rows_args.h"

namespace auspex {

void record_verify(Recorder& to, const RoundPass& round) {
    const LlamaModel& target = round.models.target;
    const RoundBuffers& b = round.buffers;
    VocabShape shape = round.target_logits();
    const Pass pass = {.rows = shape.rows,
                       .counts = round.counts(gpu::kCountsTarget),
                       .n_rows = shape.n_rows,
                       .rows_per_slot = round.form.n_nodes(),
                       .slice_layers = round.target_slice_layers()};
    target.record_embedding(to, pass);
    target.record_layers(to, pass, 0, target.config().n_layers);
    if (pass.slice_layers > 0) to.cmd.cut();
    const BufferView logits = b.target_logits.view(), choices = b.target_choices.view();
    if (!round.form.keeps_target_logits()) {
        const uint32_t n_bests = target.record_best_head(to, {logits, b.state.view(), round.form.logits_use == LogitsUse::largest_key}, shape);
        record_pick_best(to, logits, choices, shape.n_rows, n_bests);
        return to.cmd.barrier();
    }
    target.record_head(to, logits, shape);
    if (round.form.logprobs) record_logprob_rows(to, round.logprob_buffers(), shape, round.form.edits_logits, b.history_stride);
    shape.cuts = round.record_transforms(to, logits, shape);
    record_vocab_partials(to, logits, b.state.view(), b.partials.view(), shape);
    to.cmd.barrier();
    record_pick(to, b.partials.view(), choices, shape.n_rows, shape.vocab, shape.cuts);
    to.cmd.barrier();
}

} // namespace auspex
