// Records rotation and cache append.
#include "kernels/rope_append.h"

#include "shared/rope_append_args.h"

#include <bit>

namespace auspex {

void record_rope_append(Recorder& to, const AttentionShape& shape, BufferView qkv, BufferView rows, BufferView table,
                        BufferView pages, BufferView k, BufferView v, uint32_t n_rows) {
    const Kernel* kernel = to.kernel({"rope_append",
                                      6,
                                      sizeof(gpu::RopeAppendArgs),
                                      false,
                                      {shape.head_dim, shape.cache_dtype == DType::f32 ? 1u : 0u}});
    if (!kernel) return;
    to.cmd.dispatch(*kernel, {n_rows, 1, 1},
                    gpu::RopeAppendArgs{.n_rows = n_rows,
                                        .n_heads = shape.n_heads,
                                        .n_kv_heads = shape.n_kv_heads,
                                        .pages_per_slot = shape.pages_per_slot,
                                        .n_pages = shape.n_pages,
                                        .page_bits = static_cast<uint32_t>(std::countr_zero(shape.page_size))},
                    {qkv, rows, table, pages, k, v});
}

} // namespace auspex
