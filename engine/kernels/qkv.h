// Attention's input in one stage: RMSNorm, the projection to q, k and v, rotation, append to the paged cache; a member of
// the row family. rope_append does the same to what a projection has written.
#pragma once

#include "kernels/matvec.h"
#include "kernels/rope_append.h"
#include "shared/qkv_args.h"

namespace auspex {

namespace ops {
struct Qkv {
    static constexpr std::string_view kShader = "qkv";
    using Args = gpu::QkvArgs;
    struct Bindings {
        BufferView weight, x, y, norm, rows, table, pages, k_cache, v_cache;
    };
};
} // namespace ops

// weight: rows first_out … of ((n_heads + 2 · n_kv_heads) · head_dim, d), the two elements of a rotated pair neighbours.
// buffers: those of rope_append; of qkv only q is written. shape.cache_dtype: not q8_0, whose scales are of 32 elements.
void record_qkv(Recorder& to, const Tensor& weight, const NormedRows& rows, const AttentionShape& shape, const ops::RopeAppend::Bindings& buffers,
                uint32_t first_out = 0);

} // namespace auspex
