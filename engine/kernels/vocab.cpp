// Records the reductions over the vocabulary.
#include "kernels/vocab.h"

#include "base/checked.h"

#include <algorithm>

namespace auspex {

namespace {

enum class PickFrom { partials, bests };

void record_pick_rows(Recorder& to, PickFrom from, BufferView chunks, const DraftPick& out, uint32_t n_rows, gpu::PickArgs args) {
    const Tuning& tuning = to.tuning();
    const uint32_t teams = from == PickFrom::bests ? std::max(tuning.vocab_threads / tuning.lanes, 1u) : 1u;
    const auto kernel = to.kernel<ops::Pick>({.constants = {tuning.lanes * teams, tuning.lanes, teams},
                                              .variant = from == PickFrom::bests ? ".best" : "",
                                              .has_subgroup_variant = true});
    if (!kernel) return;
    args.with_cuts = out.cuts.buffer ? 1u : 0u;
    to.cmd.dispatch(kernel, {n_rows, 1, 1}, args,
                    {.partials = chunks,
                     .choices = out.choices,
                     .target_rows = out.target_rows.or_else(out.choices),
                     .draft_rows = out.draft_rows.or_else(out.choices),
                     .round_slots = out.round_slots.or_else(chunks),
                     .cuts = out.cuts.or_else(chunks)});
}

gpu::PickArgs args_of_rows(uint32_t n_chunks) {
    return {.n_chunks = n_chunks, .forward = 0, .node = 0, .batch = 0, .draft_len = 0, .with_cuts = 0};
}

gpu::PickArgs args_of_drafts(uint32_t n_chunks, uint32_t batch, uint32_t node, uint32_t draft_len) {
    return {.n_chunks = n_chunks, .forward = 1, .node = node, .batch = batch, .draft_len = draft_len, .with_cuts = 0};
}

} // namespace

uint32_t vocab_chunks(uint32_t vocab) {
    return ceil_div(vocab, gpu::kVocabChunk);
}

void record_vocab_partials(Recorder& to, BufferView logits, BufferView state, BufferView partials, const VocabShape& shape) {
    const auto kernel = to.kernel<ops::VocabPartials>({.constants = {to.tuning().lanes}, .has_subgroup_variant = true});
    if (!kernel) return;
    gpu::VocabPartialsArgs args = {};
    set_logits_rows(args, shape);
    args.of_draft = shape.of_draft ? 1u : 0u;
    args.with_cuts = shape.cuts.buffer ? 1u : 0u;
    to.cmd.dispatch(kernel, {args.n_chunks, shape.n_rows, 1}, args,
                    {.logits = logits, .state = state, .rows = shape.rows, .partials = partials, .cuts = shape.cuts.or_else(shape.rows)});
}

void record_pick(Recorder& to, BufferView partials, BufferView choices, uint32_t n_rows, uint32_t vocab, BufferView cuts) {
    record_pick_rows(to, PickFrom::partials, partials, {.choices = choices, .cuts = cuts}, n_rows, args_of_rows(vocab_chunks(vocab)));
}

void record_pick_best(Recorder& to, BufferView bests, BufferView choices, uint32_t n_rows, uint32_t n_bests) {
    record_pick_rows(to, PickFrom::bests, bests, {.choices = choices}, n_rows, args_of_rows(n_bests));
}

void record_pick_draft(Recorder& to, BufferView partials, const DraftPick& to_rows, uint32_t vocab, uint32_t batch, uint32_t node,
                       uint32_t draft_len) {
    record_pick_rows(to, PickFrom::partials, partials, to_rows, batch, args_of_drafts(vocab_chunks(vocab), batch, node, draft_len));
}

void record_pick_best_draft(Recorder& to, BufferView bests, const DraftPick& to_rows, uint32_t n_bests, uint32_t batch, uint32_t node,
                            uint32_t draft_len) {
    record_pick_rows(to, PickFrom::bests, bests, to_rows, batch, args_of_drafts(n_bests, batch, node, draft_len));
}

} // namespace auspex
