// Records one draft step: pass, head, transforms, pick.
#include "draft/model_drafter.h"

#include "shared/slot_state.h"

namespace auspex {

void record_draft_step(Recorder& to, const LlamaModel& draft, const DraftBuffers& b, uint32_t step, uint32_t draft_len,
                       uint32_t batch, LogitsUse logits_use, const TransformForm& transforms, uint32_t slice_layers) {
    const uint32_t vocab = draft.config().vocab_size;
    const bool first = step == 0;
    const uint32_t rows_per_slot = first ? 2 : 1;
    const uint32_t n_rows = rows_per_slot * batch;
    const uint64_t first_row = gpu::draft_pass_first_row(batch, step);
    Pass pass = {.rows = b.rows.sub(first_row * sizeof(gpu::Row), n_rows * sizeof(gpu::Row)),
                 .counts = first ? b.counts_first : b.counts_next,
                 .n_rows = n_rows,
                 .rows_per_slot = rows_per_slot,
                 .slice_layers = slice_layers};
    draft.record_embedding(to, pass);
    draft.record_layers(to, pass, 0, draft.config().n_layers);
    if (slice_layers > 0) to.cmd.cut();
    const LlamaModel::HeadRows rows = {.n = batch, .first_row = rows_per_slot - 1, .row_step = rows_per_slot};
    DraftPick pick = {b.choices, b.target_rows, b.rows, b.round_slots};
    if (logits_use != LogitsUse::all) {
        const BestTokens bests = {b.logits, b.state, b.round_slots, 1, step + 1, logits_use == LogitsUse::largest_key};
        const uint32_t n_bests = draft.record_best_head(to, bests, rows);
        record_pick_best_draft(to, b.logits, pick, n_bests, batch, step, draft_len);
        return to.cmd.barrier();
    }
    draft.record_head(to, b.logits, rows, draft_len * vocab, step * vocab);
    VocabShape shape = {.vocab = vocab,
                        .n_rows = batch,
                        .rows_per_slot = 1,
                        .first_offset = step + 1,
                        .of_draft = true,
                        .logits_first = step,
                        .logits_step = draft_len};
    pick.cuts = shape.cuts = record_transforms(to, b.logits, b.transforms, shape, transforms);
    record_vocab_partials(to, b.logits, b.state, b.round_slots, b.partials, shape);
    to.cmd.barrier();
    record_pick_draft(to, b.partials, pick, vocab, batch, step, draft_len);
    to.cmd.barrier();
}

} // namespace auspex
