// Rotates q in place, rotates k and appends k and v of active rows to the paged cache.
#pragma once

#include "kernels/kernel_library.h"
#include "tensor/dtype.h"

namespace auspex {

// Shape of one layer's cache and of the query heads that read it.
struct AttentionShape {
    uint32_t n_heads;
    uint32_t n_kv_heads;
    uint32_t head_dim;       // 32, 64 or 128
    uint32_t page_size;      // tokens, a power of two
    uint32_t n_pages;        // in the pool
    uint32_t pages_per_slot; // page table width
    DType cache_dtype;       // f16 or f32
};

// qkv: (n_rows, n_heads + 2 · n_kv_heads, head_dim) f32; rows: (n_rows) Row; table: (max_context, head_dim / 2, 2) f32;
// pages: (slots, pages_per_slot) uint; k, v: (n_kv_heads, n_pages, page_size, head_dim) cache_dtype.
void record_rope_append(Recorder& to, const AttentionShape& shape, BufferView qkv, BufferView rows, BufferView table,
                        BufferView pages, BufferView k, BufferView v, uint32_t n_rows);

} // namespace auspex
