// Records attention of prompt rows.
#include "kernels/prompt_attention.h"

#include "kernels/cache_args.h"
#include "shared/prompt_attention_args.h"

namespace auspex {

uint32_t prompt_attention_rows(const Tuning& tuning, const AttentionShape& shape) {
    const uint32_t queries = gpu::prompt_queries(shape.head_dim), group = shape.n_heads / shape.n_kv_heads;
    const bool fits = group <= queries && tuning.attention_split % gpu::kPromptKeys == 0;
    return !tuning.prompt_by_rows && tuning.prompt_attention && fits ? queries / group : 1;
}

void record_prompt_attention(Recorder& to, const AttentionShape& shape, BufferView qkv, BufferView rows, BufferView pages,
                             BufferView k, BufferView v, BufferView partials, uint32_t max_splits, BufferView counts,
                             uint32_t n_rows) {
    if (prompt_attention_rows(to.tuning(), shape) == 1) return record_attention(to, shape, qkv, rows, pages, k, v, partials, max_splits, counts);
    const Kernel* kernel = to.kernel({"prompt_attention",
                                      6,
                                      sizeof(gpu::AttentionArgs),
                                      false,
                                      {shape.head_dim, shape.n_heads / shape.n_kv_heads, cache_type(shape.cache_dtype),
                                       gpu::prompt_queries(shape.head_dim)}});
    if (!kernel) return;
    gpu::AttentionArgs args = attention_args(shape, to.tuning(), max_splits);
    args.n_rows = n_rows;
    to.cmd.dispatch_indirect(*kernel, counts, args, {qkv, rows, pages, k, v, partials});
}

} // namespace auspex
