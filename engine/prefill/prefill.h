// Replays: known tokens through a model's layers, into its cache. The target's prefill and the draft's catch-up are the same here: rows
// of prompts by the prompt kernels, rows of answers by the row kernels. Which positions take which path is the session's to decide.
#pragma once

#include "model/llama_forward.h"

namespace auspex {

struct ReplayBuffers {
    BufferView list;    // (n_rows) ReplayRow; host-written
    BufferView history; // (slots, history_stride) uint
    BufferView rows;    // (n_rows) Row
    BufferView counts;  // 3 uint
};

// The list's rows, for as many passes like this one as are recorded after it.
// rows_per_slot: how many neighbours in the list are a slot's, as a rule; any list is right. slice_layers as Pass has it.
Pass record_replay_pass(Recorder& to, const LlamaModel& model, const ReplayBuffers& buffers, uint32_t n_rows, PassKind kind,
                        uint32_t rows_per_slot, uint32_t history_stride, uint32_t slice_layers);

// Those rows through all layers. Nothing is sampled, so there is no head.
void record_replay(Recorder& to, const LlamaModel& model, const ReplayBuffers& buffers, uint32_t n_rows, PassKind kind,
                   uint32_t rows_per_slot, uint32_t history_stride, uint32_t slice_layers = 0);

} // namespace auspex
