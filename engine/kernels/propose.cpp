// Records the search for drafts.
#include "kernels/propose.h"

#include "shared/propose_args.h"

#include <algorithm>

namespace auspex {

void record_propose(Recorder& to, const ProposeBuffers& b, uint32_t batch, uint32_t history_stride) {
    const uint32_t threads = std::clamp(to.tuning().vocab_threads, 32u, 128u);
    const Kernel* kernel = to.kernel({"propose", 4, sizeof(gpu::ProposeArgs), false, {threads}});
    if (!kernel) return;
    to.cmd.dispatch(*kernel, {batch, 1, 1}, gpu::ProposeArgs{.history_stride = history_stride},
                    {b.batch, b.state, b.history, b.records});
}

} // namespace auspex
