// Records the split of activations into f16 parts.
#include "kernels/split_halves.h"

namespace auspex {

uint64_t halves_bytes(uint32_t width) {
    return 16ull * gpu::halves_vectors(width);
}

void record_split_halves(Recorder& to, BufferView x, BufferView halves, uint32_t n_rows, uint32_t width) {
    const auto kernel = to.kernel<ops::SplitHalves>();
    if (kernel) to.cmd.dispatch(kernel, {n_rows, 1, 1}, {.width = width}, {.x = x, .halves = halves});
}

} // namespace auspex
