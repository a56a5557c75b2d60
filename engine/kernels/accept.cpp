// Records the ops of the acceptance.
#include "kernels/accept.h"

#include "base/checked.h"
#include "kernels/vocab.h"
#include "shared/accept_args.h"

namespace auspex {

void record_accept_test(Recorder& to, const AcceptBuffers& b, const AcceptShape& shape) {
    const Kernel* kernel = to.kernel({"accept_test", 8, sizeof(gpu::AcceptTestArgs), false, {to.tuning().lanes}});
    if (!kernel) return;
    to.cmd.dispatch(*kernel, {ceil_div(shape.batch, to.tuning().lanes), 1, 1},
                    gpu::AcceptTestArgs{.batch = shape.batch, .draft_len = shape.draft_len, .vocab = shape.vocab, .draft_vocab = shape.draft_vocab},
                    {b.target_logits, b.draft_logits, b.target_choices, b.draft_choices, b.state, b.round_slots, b.target_rows, b.plans});
}

void record_accept_race(Recorder& to, const AcceptBuffers& b, const AcceptShape& shape) {
    const Kernel* kernel = to.kernel({"accept_race", 8, sizeof(gpu::AcceptRaceArgs), true, {to.tuning().lanes}});
    if (!kernel) return;
    const uint32_t n_chunks = vocab_chunks(shape.vocab);
    to.cmd.dispatch(*kernel, {n_chunks, shape.batch, 1},
                    gpu::AcceptRaceArgs{.batch = shape.batch,
                                        .draft_len = shape.draft_len,
                                        .vocab = shape.vocab,
                                        .draft_vocab = shape.draft_vocab,
                                        .n_chunks = n_chunks},
                    {b.target_logits, b.draft_logits, b.target_choices, b.draft_choices, b.state, b.round_slots, b.plans, b.race_partials});
}

void record_accept_commit(Recorder& to, const AcceptBuffers& b, const AcceptShape& shape) {
    const bool searches = shape.index_words > 0;
    const Kernel* kernel = to.kernel({searches ? "accept_commit.searches" : "accept_commit", searches ? 9u : 7u, sizeof(gpu::AcceptCommitArgs), false,
                                      {to.tuning().lanes}});
    if (!kernel) return;
    const Groups groups = {ceil_div(shape.batch, to.tuning().lanes), 1, 1};
    const gpu::AcceptCommitArgs args = {.batch = shape.batch,
                                        .draft_len = shape.draft_len,
                                        .n_chunks = vocab_chunks(shape.vocab),
                                        .history_stride = shape.history_stride,
                                        .index_words = shape.index_words};
    if (searches)
        to.cmd.dispatch(*kernel, groups, args, {b.race_partials, b.plans, b.round_slots, b.target_rows, b.state, b.history, b.records, b.counts, b.index});
    else to.cmd.dispatch(*kernel, groups, args, {b.race_partials, b.plans, b.round_slots, b.target_rows, b.state, b.history, b.records});
}

} // namespace auspex
