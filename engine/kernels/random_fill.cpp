// Records one fill per shard.
#include "kernels/random_fill.h"

#include "base/checked.h"

#include <algorithm>

namespace auspex {

void record_random_fill(Recorder& to, const Tensor& tensor, uint64_t seed, float spread) {
    const auto kernel = to.kernel<ops::RandomFill>({.constants = {tensor.layout()}});
    if (!kernel) return;
    const auto row_vectors = static_cast<uint32_t>(tensor.row_bytes() / 16);
    for (const Shard& shard : tensor.shards) { // at most max_storage_buffer_range, below 2^32 vectors
        const uint32_t groups = std::min(ceil_div(shard.n_rows * row_vectors, 64u), to.cmd.device().caps.max_groups[0]);
        to.cmd.dispatch(kernel, {groups, 1, 1},
                        {.n_rows = shard.n_rows,
                         .first_row = shard.first_row,
                         .cols = tensor.cols,
                         .steps = tensor.steps(),
                         .row_vectors = row_vectors,
                         .seed_low = static_cast<uint32_t>(seed),
                         .seed_high = static_cast<uint32_t>(seed >> 32),
                         .spread = spread},
                        {.rows = shard.buffer.view()});
    }
}

} // namespace auspex
