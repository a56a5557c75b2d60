// Records the search for drafts.
#include "kernels/propose.h"

#include <algorithm>

namespace auspex {

void record_propose(Recorder& to, const ops::Propose::Bindings& buffers, uint32_t history_stride) {
    const uint32_t threads = std::clamp(to.tuning().vocab_threads, 32u, 128u);
    const auto kernel = to.kernel<ops::Propose>({.constants = {threads}});
    if (!kernel) return;
    to.cmd.dispatch_indirect(kernel, buffers.counts.sub(gpu::kCountsSearch * 4, 12),
                             {.history_stride = history_stride, .index_words = gpu::index_words_for(history_stride)}, buffers);
}

} // namespace auspex
