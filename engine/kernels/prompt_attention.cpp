// Records attention of prompt rows.
#include "kernels/prompt_attention.h"

#include "kernels/cache_args.h"
#include "shared/prompt_attention_args.h"

#include <algorithm>

namespace auspex {

namespace {
enum class Tiles { none, shared_memory, matrix_units }; // none: through the row family's kernel

// Of a workgroup that goes without matrix units.
uint32_t queries_of(const Tuning& tuning, uint32_t head_dim) { return std::min(tuning.prompt_dims / head_dim, gpu::prompt_queries(head_dim)); }

Tiles tiles_of(const Tuning& tuning, const AttentionShape& shape) {
    const uint32_t group = shape.n_heads / shape.n_kv_heads;
    if (tuning.prompt_by_rows || !tuning.prompt_attention) return Tiles::none;
    if (tuning.prompts_use_matrices() && tuning.matrix_attention && shape.cache_dtype == DType::f16 && group <= gpu::kMatrixQueries && tuning.attention_split == gpu::kMatrixKeys)
        return Tiles::matrix_units;
    return group <= queries_of(tuning, shape.head_dim) && tuning.attention_split % gpu::kPromptKeys == 0 ? Tiles::shared_memory : Tiles::none;
}
} // namespace

uint32_t prompt_tile_rows(const Tuning& tuning, const AttentionShape& shape, uint32_t rows_per_slot) {
    const uint32_t group = shape.n_heads / shape.n_kv_heads;
    switch (tiles_of(tuning, shape)) {
    case Tiles::matrix_units: return gpu::kMatrixQueries / group;
    case Tiles::shared_memory: return queries_of(tuning, shape.head_dim) / group;
    case Tiles::none: break;
    }
    return attention_tile_rows(tuning, rows_per_slot);
}

void record_prompt_attention(Recorder& to, const AttentionShape& shape, const AttentionBuffers& b, const AttentionRows& rows, uint32_t max_splits) {
    const Tuning& tuning = to.tuning();
    const Tiles tiles = tiles_of(tuning, shape);
    if (tiles == Tiles::none) return record_attention(to, shape, b, rows, max_splits);
    const uint32_t group = shape.n_heads / shape.n_kv_heads;
    KernelId id = {.constants = {shape.head_dim, group, cache_type(shape.cache_dtype), queries_of(tuning, shape.head_dim)}};
    if (tiles == Tiles::matrix_units) {
        id.variant = "_matrix";
        id.constants = {4 * tuning.lanes, shape.head_dim, group, tuning.matrix.m, tuning.matrix.n, tuning.matrix.k, tuning.matmul_parts};
        id.full_subgroups = true;
    }
    const auto kernel = to.kernel<ops::PromptAttention>(std::move(id));
    if (!kernel) return;
    to.cmd.dispatch_indirect(
        kernel, rows.counts, attention_args(shape, tuning, max_splits, rows.n_rows),
        {.qkv = b.qkv, .rows = rows.rows, .pages = b.pages, .k_cache = b.k_cache, .v_cache = b.v_cache, .partials = b.partials});
}

} // namespace auspex
