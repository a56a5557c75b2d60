// Attention of prompt rows: as attention, but K and V are read once for a tile of rows. Its bits differ from the row
// family's, never between chunkings.
#pragma once

#include "kernels/attention.h"

namespace auspex {

namespace ops {
struct PromptAttention {
    static constexpr std::string_view kShader = "prompt_attention";
    using Args = gpu::AttentionArgs;
    struct Bindings {
        BufferView qkv, rows, pages, k_cache, v_cache, partials;
    };
};
} // namespace ops

// Rows that a workgroup takes, in a prompt pass with so many neighbouring rows of each slot. Where the device's prompts, or heads
// grouped like this, go through the row family's kernel: attention_tile_rows.
uint32_t prompt_tile_rows(const Tuning& tuning, const AttentionShape& shape, uint32_t rows_per_slot);

// As record_attention, for rows of record_replay_rows, with a grid of prompt_tile_rows.
void record_prompt_attention(Recorder& to, const AttentionShape& shape, const AttentionBuffers& buffers, const AttentionRows& rows,
                             uint32_t max_splits);

} // namespace auspex
