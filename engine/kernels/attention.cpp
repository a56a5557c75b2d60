// Records split attention and the combination of its splits.
#include "kernels/attention.h"

#include "kernels/cache_args.h"

namespace auspex {

void record_attention(Recorder& to, const AttentionShape& shape, BufferView qkv, BufferView rows, BufferView pages,
                      BufferView k, BufferView v, BufferView partials, uint32_t max_splits, BufferView counts, const CombineBuffers* combine) {
    const Kernel* kernel = to.kernel({"attention",
                                      8,
                                      sizeof(gpu::AttentionArgs),
                                      true,
                                      {to.tuning().lanes, shape.head_dim, shape.n_heads / shape.n_kv_heads,
                                       cache_type(shape.cache_dtype), combine ? 1u : 0u},
                                      "attention.wide"});
    if (!kernel) return;
    to.cmd.dispatch_indirect(*kernel, counts, attention_args(shape, to.tuning(), max_splits),
                             {qkv, rows, pages, k, v, partials, combine ? combine->y : partials, combine ? combine->done : partials});
}

void record_combine(Recorder& to, const AttentionShape& shape, BufferView partials, BufferView rows, BufferView y,
                    uint32_t max_splits, uint32_t n_rows) {
    const Kernel* kernel = to.kernel({"combine", 3, sizeof(gpu::CombineArgs), false, {}});
    if (!kernel) return;
    to.cmd.dispatch(*kernel, {shape.n_heads, n_rows, 1},
                    gpu::CombineArgs{.n_heads = shape.n_heads,
                                     .head_dim = shape.head_dim,
                                     .split = to.tuning().attention_split,
                                     .max_splits = max_splits},
                    {partials, rows, y});
}

} // namespace auspex
