// Records one draft step.
#include "draft/model_drafter.h"

#include "shared/round_rows.h"
#include "shared/rows_args.h"

namespace auspex {

void record_draft_step(Recorder& to, const RoundPass& round, uint32_t node) {
    const LlamaModel& draft = *round.models.draft;
    const RoundBuffers& b = round.buffers;
    const uint32_t batch = round.form.batch, draft_len = round.form.draft_len, slice_layers = round.draft_slice_layers();
    const uint32_t rows_per_slot = gpu::draft_pass_rows_per_entry(round.draft_lead(), node);
    VocabShape shape = round.draft_logits(node);
    const Pass pass = {.rows = shape.rows,
                       .counts = round.counts(node == 0 ? gpu::kCountsDraftFirst : gpu::kCountsDraftNext),
                       .n_rows = rows_per_slot * batch,
                       .rows_per_slot = rows_per_slot,
                       .slice_layers = slice_layers};
    Recorder passes = to;
    passes.int8_x = draft.rounds_x();
    draft.record_embedding(passes, pass);
    draft.record_layers(passes, pass, 0, draft.config().n_layers);
    if (slice_layers > 0) to.cmd.cut();
    const BufferView logits = b.draft_logits.view();
    DraftPick pick = {.choices = b.draft_choices.view(),
                      .target_rows = b.target_rows.view(),
                      .draft_rows = b.draft_rows.view(),
                      .round_slots = b.round_slots.view()};
    if (round.form.logits_use != LogitsUse::all) {
        const BestTokens bests = {.bests = logits, .state = b.state.view(), .adds_noise = round.form.logits_use == LogitsUse::largest_key};
        const uint32_t n_bests = draft.record_best_head(passes, bests, shape);
        record_pick_best_draft(to, logits, pick, n_bests, batch, node, draft_len);
        return to.cmd.barrier();
    }
    draft.record_head(passes, logits, shape);
    pick.cuts = shape.cuts = round.record_transforms(to, logits, shape);
    record_vocab_partials(to, logits, b.state.view(), b.partials.view(), shape);
    to.cmd.barrier();
    record_pick_draft(to, b.partials.view(), pick, shape.vocab, batch, node, draft_len);
    to.cmd.barrier();
}

} // namespace auspex
