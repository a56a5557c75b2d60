// Records the target's part of a round.
#include "verify/verify.h"

namespace auspex {

void record_verify(Recorder& to, const LlamaModel& target, const VerifyBuffers& b, uint32_t draft_len, uint32_t batch,
                   LogitsUse logits_use, const TransformForm& transforms, uint32_t slice_layers) {
    const uint32_t vocab = target.config().vocab_size;
    const uint32_t n_rows = batch * (draft_len + 1);
    Pass pass = {.rows = b.rows, .counts = b.counts, .n_rows = n_rows, .rows_per_slot = draft_len + 1, .slice_layers = slice_layers};
    target.record_embedding(to, pass);
    target.record_layers(to, pass, 0, target.config().n_layers);
    if (slice_layers > 0) to.cmd.cut();
    if (logits_use != LogitsUse::all) {
        const BestTokens bests = {b.logits, b.state, b.round_slots, draft_len + 1, 1, logits_use == LogitsUse::largest_key};
        const uint32_t n_bests = target.record_best_head(to, bests, {.n = n_rows});
        record_pick_best(to, b.logits, b.choices, n_rows, n_bests);
        return to.cmd.barrier();
    }
    target.record_head(to, b.logits, {.n = n_rows}, vocab);
    VocabShape shape = {.vocab = vocab, .n_rows = n_rows, .rows_per_slot = draft_len + 1, .first_offset = 1, .of_draft = false};
    shape.cuts = record_transforms(to, b.logits, b.transforms, shape, transforms);
    record_vocab_partials(to, b.logits, b.state, b.round_slots, b.partials, shape);
    to.cmd.barrier();
    record_pick(to, b.partials, b.choices, n_rows, vocab, shape.cuts);
    to.cmd.barrier();
}

} // namespace auspex
