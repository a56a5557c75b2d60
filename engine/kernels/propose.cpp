// Records the search for drafts.
#include "kernels/propose.h"

#include "shared/propose_args.h"

#include <algorithm>

namespace auspex {

void record_propose(Recorder& to, const ProposeBuffers& b, uint32_t history_stride) {
    const uint32_t threads = std::clamp(to.tuning().vocab_threads, 32u, 128u);
    const Kernel* kernel = to.kernel({"propose", 6, sizeof(gpu::ProposeArgs), false, {threads}});
    if (!kernel) return;
    to.cmd.dispatch_indirect(*kernel, b.counts.sub(gpu::kCountsSearch * 4, 12),
                             gpu::ProposeArgs{.history_stride = history_stride, .index_words = gpu::index_words_for(history_stride)},
                             {b.batch, b.state, b.history, b.records, b.counts, b.index});
}

} // namespace auspex
