// Records a pass over known tokens.
#include "prefill/prefill.h"

#include "kernels/prompt_attention.h"
#include "kernels/rows.h"

namespace auspex {

Pass record_replay_pass(Recorder& to, const LlamaModel& model, const ReplayBuffers& buffers, uint32_t n_rows, PassKind kind,
                        uint32_t rows_per_slot, uint32_t history_stride, uint32_t slice_layers) {
    const AttentionShape shape = model.cache().attention_shape();
    record_replay_rows(to, {.list = buffers.list, .history = buffers.history, .rows = buffers.rows, .counts = buffers.counts}, n_rows, history_stride,
                       model.config().n_kv_heads,
                       kind == PassKind::prompt ? prompt_tile_rows(to.tuning(), shape, rows_per_slot) : attention_tile_rows(to.tuning(), rows_per_slot));
    to.cmd.barrier();
    return {.rows = buffers.rows, .counts = buffers.counts, .n_rows = n_rows, .kind = kind, .rows_per_slot = rows_per_slot, .slice_layers = slice_layers};
}

void record_replay(Recorder& to, const LlamaModel& model, const ReplayBuffers& buffers, uint32_t n_rows, PassKind kind,
                   uint32_t rows_per_slot, uint32_t history_stride, uint32_t slice_layers) {
    const Pass pass = record_replay_pass(to, model, buffers, n_rows, kind, rows_per_slot, history_stride, slice_layers);
    model.record_embedding(to, pass);
    model.record_layers(to, pass, 0, model.config().n_layers);
}

} // namespace auspex
