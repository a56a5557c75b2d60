// Attention's input in one stage: RMSNorm, the projection to q, k and v, rotation, append to the paged cache; a member of
// the row family. rope_append does the same to what a projection has written.
#pragma once

#include "kernels/matvec.h"
#include "kernels/rope_append.h"

namespace auspex {

// weight: rows first_out … of ((n_heads + 2 · n_kv_heads) · head_dim, d), the two elements of a rotated pair neighbours.
// qkv: (n_rows, n_heads + 2 · n_kv_heads, head_dim) f32, of which q is written; the others as record_rope_append has them.
// shape.cache_dtype: not q8_0, whose scales are of 32 elements.
struct QkvBuffers {
    BufferView qkv, rows, table, pages, k, v;
};
void record_qkv(Recorder& to, const Tensor& weight, const NormedRows& rows, const AttentionShape& shape, const QkvBuffers& buffers,
                uint32_t first_out = 0);

} // namespace auspex
