// Rotates q in place, rotates k and appends k and v of active rows to the paged cache.
#pragma once

#include "kernels/attention_shape.h"
#include "kernels/kernel_library.h"
#include "shared/rope_append_args.h"

namespace auspex {

namespace ops {
struct RopeAppend {
    static constexpr std::string_view kShader = "rope_append";
    using Args = gpu::RopeAppendArgs;
    struct Bindings {
        BufferView qkv;              // (n_rows, n_heads + 2 · n_kv_heads, head_dim) f32
        BufferView rows;             // (n_rows) Row
        BufferView table;            // (max_context, head_dim / 2, 2) f32
        BufferView pages;            // (slots, pages_per_slot) uint
        BufferView k_cache, v_cache; // (n_kv_heads, n_pages) pages of cache_page_bytes
    };
};
} // namespace ops

void record_rope_append(Recorder& to, const AttentionShape& shape, const ops::RopeAppend::Bindings& buffers, uint32_t n_rows);

} // namespace auspex
