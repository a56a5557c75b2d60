// Records the ops of the acceptance.
#include "kernels/accept.h"

#include "base/checked.h"
#include "kernels/vocab.h"

namespace auspex {

namespace {

// Where there are no drafts the target's buffers are bound in their place.
AcceptBuffers with_stand_ins(AcceptBuffers b) {
    b.draft_logits = b.draft_logits.or_else(b.target_logits);
    b.draft_choices = b.draft_choices.or_else(b.target_choices);
    return b;
}

} // namespace

void record_accept_test(Recorder& to, const AcceptBuffers& buffers, const AcceptShape& shape) {
    const AcceptBuffers b = with_stand_ins(buffers);
    const auto kernel = to.kernel<ops::AcceptTest>({.constants = {to.tuning().lanes}});
    if (!kernel) return;
    to.cmd.dispatch(kernel, {ceil_div(shape.batch, to.tuning().lanes), 1, 1},
                    {.batch = shape.batch, .draft_len = shape.draft_len, .vocab = shape.vocab, .draft_vocab = shape.draft_vocab},
                    {.target_logits = b.target_logits,
                     .draft_logits = b.draft_logits,
                     .target_choices = b.target_choices,
                     .draft_choices = b.draft_choices,
                     .state = b.state,
                     .round_slots = b.round_slots,
                     .target_rows = b.target_rows,
                     .plans = b.plans});
}

void record_accept_race(Recorder& to, const AcceptBuffers& buffers, const AcceptShape& shape) {
    const AcceptBuffers b = with_stand_ins(buffers);
    const auto kernel = to.kernel<ops::AcceptRace>({.constants = {to.tuning().lanes}, .has_subgroup_variant = true});
    if (!kernel) return;
    const uint32_t n_chunks = vocab_chunks(shape.vocab);
    to.cmd.dispatch(kernel, {n_chunks, shape.batch, 1},
                    {.batch = shape.batch, .draft_len = shape.draft_len, .vocab = shape.vocab, .draft_vocab = shape.draft_vocab, .n_chunks = n_chunks},
                    {.target_logits = b.target_logits,
                     .draft_logits = b.draft_logits,
                     .target_choices = b.target_choices,
                     .draft_choices = b.draft_choices,
                     .state = b.state,
                     .round_slots = b.round_slots,
                     .plans = b.plans,
                     .partials = b.race_partials});
}

void record_accept_commit(Recorder& to, const AcceptBuffers& b, const AcceptShape& shape) {
    const Groups groups = {ceil_div(shape.batch, to.tuning().lanes), 1, 1};
    const gpu::AcceptCommitArgs args = {.batch = shape.batch,
                                        .draft_len = shape.draft_len,
                                        .n_chunks = vocab_chunks(shape.vocab),
                                        .history_stride = shape.history_stride,
                                        .index_words = shape.index_words};
    if (shape.index_words == 0) {
        if (const auto kernel = to.kernel<ops::AcceptCommit>({.constants = {to.tuning().lanes}}))
            to.cmd.dispatch(kernel, groups, args,
                            {.partials = b.race_partials,
                             .plans = b.plans,
                             .round_slots = b.round_slots,
                             .target_rows = b.target_rows,
                             .state = b.state,
                             .history = b.history,
                             .records = b.records});
    } else if (const auto kernel = to.kernel<ops::AcceptCommitSearches>({.constants = {to.tuning().lanes}})) {
        to.cmd.dispatch(kernel, groups, args,
                        {.partials = b.race_partials,
                         .plans = b.plans,
                         .round_slots = b.round_slots,
                         .target_rows = b.target_rows,
                         .state = b.state,
                         .history = b.history,
                         .records = b.records,
                         .counts = b.counts,
                         .index = b.index});
    }
}

} // namespace auspex
