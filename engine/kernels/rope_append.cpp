// Records rotation and cache append.
#include "kernels/rope_append.h"

#include "kernels/cache_args.h"
#include "shared/rope_append_args.h"

namespace auspex {

uint32_t cache_type(DType dtype) {
    return dtype == DType::f32 ? gpu::kCacheF32 : dtype == DType::q8_0 ? gpu::kCacheQ8 : gpu::kCacheF16;
}

uint64_t cache_page_bytes(DType dtype, CacheSide side, uint32_t page_size, uint32_t head_dim) {
    const uint32_t type = cache_type(dtype);
    const uint32_t words = gpu::cache_element_words(type, head_dim) + gpu::cache_scale_words(type, side == CacheSide::k, head_dim);
    return uint64_t(page_size) * words * 4;
}

void record_rope_append(Recorder& to, const AttentionShape& shape, BufferView qkv, BufferView rows, BufferView table,
                        BufferView pages, BufferView k, BufferView v, uint32_t n_rows) {
    const Kernel* kernel = to.kernel({"rope_append",
                                      6,
                                      sizeof(gpu::RopeAppendArgs),
                                      false,
                                      {shape.head_dim, cache_type(shape.cache_dtype)}});
    if (!kernel) return;
    to.cmd.dispatch(*kernel, {n_rows, 1, 1}, cache_args<gpu::RopeAppendArgs>(shape), {qkv, rows, table, pages, k, v});
}

} // namespace auspex
