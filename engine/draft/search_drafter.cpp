// Records the search for the next round's drafts.
#include "draft/search_drafter.h"

#include "kernels/propose.h"

namespace auspex {

void record_search(Recorder& to, const RoundPass& round) {
    const RoundBuffers& b = round.buffers;
    to.cmd.barrier();
    record_propose(to, {round.turn.batch.view(), b.state.view(), b.history.view(), round.turn.records.view(), b.counts.view(), b.index.view()}, b.history_stride);
}

} // namespace auspex
