// Records the search for drafts.
#include "kernels/propose.h"

#include "shared/propose_args.h"

namespace auspex {

void record_propose(Recorder& to, const ProposeBuffers& b, uint32_t batch, uint32_t history_stride) {
    const Kernel* kernel = to.kernel({"propose", 4, sizeof(gpu::ProposeArgs), false, {}});
    if (!kernel) return;
    to.cmd.dispatch(*kernel, {batch, 1, 1}, gpu::ProposeArgs{.history_stride = history_stride},
                    {b.batch, b.state, b.history, b.records});
}

} // namespace auspex
