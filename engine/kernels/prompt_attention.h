// Attention of prompt rows: as attention, but K and V are read once for a tile of rows. Its bits differ from the row
// family's, never between chunkings.
#pragma once

#include "kernels/attention.h"

namespace auspex {

// Rows that share a workgroup; 1: the device's prompts, or heads grouped like this, go through the row family's kernel.
uint32_t prompt_attention_rows(const Tuning& tuning, const AttentionShape& shape);

// As record_attention, for rows of record_replay_rows. counts: {splits, n_kv_heads, at least n_rows /
// prompt_attention_rows rounded up, exactly n_rows when that is 1}.
void record_prompt_attention(Recorder& to, const AttentionShape& shape, BufferView qkv, BufferView rows, BufferView pages,
                             BufferView k, BufferView v, BufferView partials, uint32_t max_splits, BufferView counts,
                             uint32_t n_rows);

} // namespace auspex
