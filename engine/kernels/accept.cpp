// Records the acceptance: test, race, commit.
#include "kernels/accept.h"

#include "base/checked.h"
#include "kernels/vocab.h"
#include "shared/accept_args.h"

namespace auspex {

void record_accept(Recorder& to, const AcceptBuffers& b, const AcceptShape& shape) {
    const Kernel* test = to.kernel({"accept_test", 8, sizeof(gpu::AcceptTestArgs), false, {to.tuning().lanes}});
    const Kernel* race = to.kernel({"accept_race", 8, sizeof(gpu::AcceptRaceArgs), true, {to.tuning().lanes}});
    const bool searches = shape.index_words > 0;
    const Kernel* commit = to.kernel({searches ? "accept_commit.searches" : "accept_commit", searches ? 9u : 7u, sizeof(gpu::AcceptCommitArgs), false,
                                      {to.tuning().lanes}});
    if (!test || !race || !commit) return;
    uint32_t n_chunks = vocab_chunks(shape.vocab);
    uint32_t groups = ceil_div(shape.batch, to.tuning().lanes);
    to.cmd.dispatch(*test, {groups, 1, 1},
                    gpu::AcceptTestArgs{.batch = shape.batch, .draft_len = shape.draft_len, .vocab = shape.vocab, .draft_vocab = shape.draft_vocab},
                    {b.target_logits, b.draft_logits, b.target_choices, b.draft_choices, b.state, b.round_slots, b.target_rows,
                     b.plans});
    to.cmd.barrier();
    if (shape.races) {
        to.cmd.dispatch(*race, {n_chunks, shape.batch, 1},
                        gpu::AcceptRaceArgs{.batch = shape.batch,
                                            .draft_len = shape.draft_len,
                                            .vocab = shape.vocab,
                                            .draft_vocab = shape.draft_vocab,
                                            .n_chunks = n_chunks},
                        {b.target_logits, b.draft_logits, b.target_choices, b.draft_choices, b.state, b.round_slots, b.plans,
                         b.race_partials});
        to.cmd.barrier();
    }
    const gpu::AcceptCommitArgs args = {.batch = shape.batch,
                                        .draft_len = shape.draft_len,
                                        .n_chunks = n_chunks,
                                        .history_stride = shape.history_stride,
                                        .index_words = shape.index_words};
    if (searches)
        to.cmd.dispatch(*commit, {groups, 1, 1}, args,
                        {b.race_partials, b.plans, b.round_slots, b.target_rows, b.state, b.history, b.records, b.counts, b.index});
    else to.cmd.dispatch(*commit, {groups, 1, 1}, args, {b.race_partials, b.plans, b.round_slots, b.target_rows, b.state, b.history, b.records});
}

} // namespace auspex
