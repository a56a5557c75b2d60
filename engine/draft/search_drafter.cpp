// Records the search for the next round's drafts.
#include "draft/search_drafter.h"

#include "kernels/propose.h"

namespace auspex {

void record_search(Recorder& to, const RoundPass& round) {
    const RoundBuffers& b = round.buffers;
    to.cmd.barrier();
    record_propose(to,
                   {.batch = round.turn.batch.view(),
                    .state = b.state.view(),
                    .history = b.history.view(),
                    .records = round.turn.records.view(),
                    .counts = b.counts.view(),
                    .index = b.index.view()},
                   b.history_stride);
}

} // namespace auspex
