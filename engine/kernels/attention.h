// Paged attention in splits at absolute positions, and the combination of the splits.
#pragma once

#include "kernels/attention_shape.h"
#include "kernels/kernel_library.h"
#include "shared/attention_args.h"

namespace auspex {

namespace ops {
struct Attention {
    static constexpr std::string_view kShader = "attention";
    using Args = gpu::AttentionArgs;
    struct Bindings {
        BufferView qkv, rows, pages, k_cache, v_cache, partials, y, done;
    };
};

struct Combine {
    static constexpr std::string_view kShader = "combine";
    using Args = gpu::CombineArgs;
    struct Bindings {
        BufferView partials; // as of AttentionBuffers
        BufferView rows;     // (n_rows) Row
        BufferView y;        // (n_rows, n_heads · head_dim) f32; inactive rows become zeros
    };
};
} // namespace ops

// Rows that a workgroup takes, in a pass with so many neighbouring rows of each slot.
uint32_t attention_tile_rows(const Tuning& tuning, uint32_t rows_per_slot);

struct AttentionBuffers {
    BufferView qkv, pages, k_cache, v_cache; // as of ops::RopeAppend, with q rotated
    BufferView partials;                     // (n_rows, n_heads, max_splits, head_dim + 2) f32
};
// counts: the indirect grid {splits, n_kv_heads, n_rows / attention_tile_rows(…, rows_per_slot) rounded up}, written by
// rows.comp or replay_rows.comp.
// combine: attention joins the splits as well, with the bits of record_combine, and leaves inactive rows of y as they are;
// null: it does not.
struct CombineBuffers {
    BufferView y;    // (n_rows, n_heads · head_dim) f32
    BufferView done; // (n_rows, n_kv_heads) uint, zero before and after
};
struct AttentionRows {
    BufferView rows;   // (n_rows) Row
    BufferView counts; // 3 uint
    uint32_t n_rows;
    uint32_t rows_per_slot = 1; // neighbours of one slot, as a rule; any rows are right
};
void record_attention(Recorder& to, const AttentionShape& shape, const AttentionBuffers& buffers, const AttentionRows& rows, uint32_t max_splits,
                      const CombineBuffers* combine = nullptr);

void record_combine(Recorder& to, const AttentionShape& shape, const ops::Combine::Bindings& buffers, uint32_t max_splits, uint32_t n_rows);

} // namespace auspex
