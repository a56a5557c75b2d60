// Records what log-probabilities are made of.
#include "kernels/logprobs.h"

#include "base/checked.h"
#include "shared/round_rows.h"

namespace auspex {

void record_logprob_rows(Recorder& to, const LogprobBuffers& b, const VocabShape& shape, bool will_edit, uint32_t history_stride) {
    const auto partials = to.kernel<ops::LogprobsPartials>({.constants = {to.tuning().lanes}, .has_subgroup_variant = true});
    const auto reduce = to.kernel<ops::LogprobsRows>({.constants = {to.tuning().lanes}, .has_subgroup_variant = true});
    KernelOf<ops::LogprobsKeep> keep;
    if (will_edit) keep = to.kernel<ops::LogprobsKeep>({.constants = {to.tuning().vocab_threads}});
    if (!partials || !reduce || (will_edit && !keep)) return;
    gpu::LogprobsArgs args = {};
    set_logits_rows(args, shape);
    args.history_stride = history_stride;
    to.cmd.dispatch(partials, {args.n_chunks, shape.n_rows, 1}, args, {.logits = b.logits, .state = b.state, .rows = shape.rows, .partials = b.partials});
    if (will_edit)
        to.cmd.dispatch(keep, {ceil_div(gpu::kept_words_of(history_stride), gpu::kKeptBlock), shape.n_rows, 1}, args,
                        {.logits = b.logits,
                         .state = b.state,
                         .rows = shape.rows,
                         .history = b.history,
                         .target_rows = b.target_rows,
                         .biases = b.biases,
                         .kept = b.kept});
    to.cmd.barrier();
    to.cmd.dispatch(reduce, {shape.n_rows, 1, 1}, args, {.partials = b.partials, .state = b.state, .rows = shape.rows, .logprobs = b.logprobs});
}

void record_logprobs_chosen(Recorder& to, const LogprobBuffers& b, const ChosenShape& shape) {
    const auto kernel = to.kernel<ops::LogprobsChosen>({.constants = {to.tuning().vocab_threads}});
    if (!kernel) return;
    to.cmd.dispatch(kernel, {gpu::nodes_of(shape.draft_len), shape.batch, 1},
                    {.draft_len = shape.draft_len, .vocab = shape.vocab, .history_stride = shape.history_stride, .with_kept = shape.edited ? 1u : 0u},
                    {.logits = b.logits,
                     .state = b.state,
                     .round_slots = b.round_slots,
                     .history = b.history,
                     .biases = b.biases,
                     .kept = b.kept,
                     .logprobs = b.logprobs});
}

} // namespace auspex
