// Records the split of activations into f16 parts.
#include "kernels/split_halves.h"

#include "shared/split_halves_args.h"

namespace auspex {

uint64_t halves_bytes(uint32_t width) {
    return 16ull * gpu::halves_vectors(width);
}

void record_split_halves(Recorder& to, BufferView x, BufferView halves, uint32_t n_rows, uint32_t width) {
    const Kernel* kernel = to.kernel({"split_halves", 2, sizeof(gpu::SplitHalvesArgs), false, {}});
    if (!kernel) return;
    to.cmd.dispatch(*kernel, {n_rows, 1, 1}, gpu::SplitHalvesArgs{.width = width}, {x, halves});
}

} // namespace auspex
