// Paged attention in splits at absolute positions, and the combination of the splits.
#pragma once

#include "kernels/rope_append.h"

namespace auspex {

// Rows that a workgroup takes, in a pass with so many neighbouring rows of each slot.
uint32_t attention_tile_rows(const Tuning& tuning, uint32_t rows_per_slot);

// qkv, rows, pages, k, v as in rope_append, with q rotated. partials: (n_rows, n_heads, max_splits, head_dim + 2) f32.
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
void record_attention(Recorder& to, const AttentionShape& shape, BufferView qkv, const AttentionRows& rows, BufferView pages,
                      BufferView k, BufferView v, BufferView partials, uint32_t max_splits, const CombineBuffers* combine = nullptr);

// y: (n_rows, n_heads · head_dim) f32; inactive rows become zeros.
void record_combine(Recorder& to, const AttentionShape& shape, BufferView partials, BufferView rows, BufferView y,
                    uint32_t max_splits, uint32_t n_rows);

} // namespace auspex
