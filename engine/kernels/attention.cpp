// Records split attention and the combination of its splits.
#include "kernels/attention.h"

#include "base/checked.h"
#include "kernels/cache_args.h"
#include "shared/texels.h"

#include <algorithm>
#include <bit>

namespace auspex {

namespace {
// Queries that share what is read of K and V; the ".wide" variants are built with these: shaders/variants.cmake has them.
uint32_t queries_at_once(const Tuning& tuning, uint32_t n_queries, uint32_t group, uint32_t head_dim) {
    if (!tuning.wide) return std::clamp(tuning.attention_dims / head_dim, 1u, group);
    const uint32_t wanted = ceil_div(n_queries, ceil_div(n_queries, 6u));
    for (uint32_t built : {1u, 2u, 3u, 4u})
        if (built >= wanted) return built;
    return 6;
}
constexpr uint32_t kTeamBytes = 16384; // half of the shared memory of devices that have teams; the rest is for exchanges

// Teams of a workgroup: what each knows of all query heads of a KV head must fit, however many go at once, since teams change bits.
uint32_t teams_of(const Tuning& tuning, const AttentionShape& shape, uint32_t group) {
    const uint32_t fitting = kTeamBytes / (group * (shape.head_dim + 2) * 4);
    return std::bit_floor(std::clamp(fitting, 1u, tuning.attention_teams));
}
} // namespace

uint32_t attention_tile_rows(const Tuning& tuning, uint32_t rows_per_slot) {
    return ceil_div(rows_per_slot, ceil_div(rows_per_slot, tuning.attention_rows)); // tiles of one size, as far as that goes
}

void record_attention(Recorder& to, const AttentionShape& shape, const AttentionBuffers& b, const AttentionRows& rows, uint32_t max_splits,
                      const CombineBuffers* combine) {
    const uint32_t group = shape.n_heads / shape.n_kv_heads, tile_rows = attention_tile_rows(to.tuning(), rows.rows_per_slot);
    const uint32_t queries = queries_at_once(to.tuning(), tile_rows * group, group, shape.head_dim);
    const uint32_t teams = to.tuning().wide ? 1 : teams_of(to.tuning(), shape, group);
    const auto kernel = to.kernel<ops::Attention>(
        {.constants = {to.tuning().lanes, shape.head_dim, group, cache_type(shape.cache_dtype), combine ? 1u : 0u, queries, teams, to.tuning().lanes * teams},
         .has_subgroup_variant = true,
         .wide_variant = ".wide.dim" + std::to_string(shape.head_dim) + ".queries" + std::to_string(queries),
         .texels = {gpu::kTexelVecs + gpu::kAttentionK, gpu::kTexelVecs + gpu::kAttentionV}});
    if (!kernel) return;
    gpu::AttentionArgs args = attention_args(shape, to.tuning(), max_splits, rows.n_rows);
    args.tile_rows = tile_rows;
    to.cmd.dispatch_indirect(kernel, rows.counts, args,
                             {.qkv = b.qkv,
                              .rows = rows.rows,
                              .pages = b.pages,
                              .k_cache = b.k_cache,
                              .v_cache = b.v_cache,
                              .partials = b.partials,
                              .y = combine ? combine->y : b.partials,
                              .done = combine ? combine->done : b.partials});
}

void record_combine(Recorder& to, const AttentionShape& shape, const ops::Combine::Bindings& buffers, uint32_t max_splits, uint32_t n_rows) {
    const auto kernel = to.kernel<ops::Combine>();
    if (!kernel) return;
    to.cmd.dispatch(kernel, {shape.n_heads, n_rows, 1},
                    {.n_heads = shape.n_heads, .head_dim = shape.head_dim, .split = to.tuning().attention_split, .max_splits = max_splits}, buffers);
}

} // namespace auspex
