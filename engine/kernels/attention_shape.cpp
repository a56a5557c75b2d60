// Reckons a cache's pages as shared/cache_layout.h lays them out.
#include "kernels/attention_shape.h"

#include "shared/cache_layout.h"

namespace auspex {

uint32_t cache_type(DType dtype) {
    return dtype == DType::f32 ? gpu::kCacheF32 : dtype == DType::q8_0 ? gpu::kCacheQ8 : gpu::kCacheF16;
}

uint64_t cache_page_bytes(DType dtype, CacheSide side, uint32_t page_size, uint32_t head_dim) {
    const uint32_t type = cache_type(dtype);
    const uint32_t words = gpu::cache_element_words(type, head_dim) + gpu::cache_scale_words(type, side == CacheSide::k, head_dim);
    return uint64_t(page_size) * words * 4;
}

} // namespace auspex
