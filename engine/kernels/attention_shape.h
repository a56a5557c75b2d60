// The shape of a layer's paged cache and of the heads that read it, and what its pages take.
#pragma once

#include "tensor/dtype.h"

#include <cstdint>

namespace auspex {

struct AttentionShape {
    uint32_t n_heads;
    uint32_t n_kv_heads;
    uint32_t head_dim;       // 32, 64 or 128
    uint32_t page_size;      // tokens, a power of two
    uint32_t n_pages;        // in the pool
    uint32_t pages_per_slot; // page table width
    DType cache_dtype;       // f16, f32 or q8_0
};

// What a pool's pages are made of: shared/cache_layout.h. Others than these dtypes: not for caches.
constexpr bool is_cache_dtype(DType dtype) { return dtype == DType::f16 || dtype == DType::f32 || dtype == DType::q8_0; }
uint32_t cache_type(DType dtype); // as shaders know it
enum class CacheSide { k, v };    // the scales of both sides of a q8_0 cache lie in k
uint64_t cache_page_bytes(DType dtype, CacheSide side, uint32_t page_size, uint32_t head_dim);

} // namespace auspex
