// Records attention of prompt rows.
#include "kernels/prompt_attention.h"

#include "kernels/cache_args.h"
#include "shared/prompt_attention_args.h"

namespace auspex {

namespace {
// 0: through the row family's kernel.
uint32_t own_tile_rows(const Tuning& tuning, const AttentionShape& shape) {
    const uint32_t queries = gpu::prompt_queries(shape.head_dim), group = shape.n_heads / shape.n_kv_heads;
    const bool fits = group <= queries && tuning.attention_split % gpu::kPromptKeys == 0;
    return !tuning.prompt_by_rows && tuning.prompt_attention && fits ? queries / group : 0;
}
} // namespace

uint32_t prompt_tile_rows(const Tuning& tuning, const AttentionShape& shape, uint32_t rows_per_slot) {
    const uint32_t own = own_tile_rows(tuning, shape);
    return own > 0 ? own : attention_tile_rows(tuning, rows_per_slot);
}

void record_prompt_attention(Recorder& to, const AttentionShape& shape, BufferView qkv, const AttentionRows& rows, BufferView pages,
                             BufferView k, BufferView v, BufferView partials, uint32_t max_splits) {
    if (own_tile_rows(to.tuning(), shape) == 0) return record_attention(to, shape, qkv, rows, pages, k, v, partials, max_splits);
    const Kernel* kernel = to.kernel({"prompt_attention",
                                      6,
                                      sizeof(gpu::AttentionArgs),
                                      false,
                                      {shape.head_dim, shape.n_heads / shape.n_kv_heads, cache_type(shape.cache_dtype),
                                       gpu::prompt_queries(shape.head_dim)}});
    if (!kernel) return;
    to.cmd.dispatch_indirect(*kernel, rows.counts, attention_args(shape, to.tuning(), max_splits, rows.n_rows),
                             {qkv, rows.rows, pages, k, v, partials});
}

} // namespace auspex
