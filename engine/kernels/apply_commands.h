// Writes the host's commands into GPU-owned state.
#pragma once

#include "kernels/kernel_library.h"
#include "shared/apply_commands_args.h"

namespace auspex {

namespace ops {
struct ApplyCommands {
    static constexpr std::string_view kShader = "apply_commands";
    using Args = gpu::ApplyCommandsArgs;
    struct Bindings {
        BufferView n_commands;   // 1 uint
        BufferView commands;     // (max_commands) SlotCommand
        BufferView state;        // (slots) SlotState
        BufferView history;      // (slots, history_stride) uint
        BufferView target_pages; // (slots, pages_per_slot) uint
        BufferView draft_pages;  // (slots, draft_pages_per_slot) uint
        BufferView biases;       // (slots, kMaxBiases) TokenBias
    };
};
} // namespace ops

void record_apply_commands(Recorder& to, const ops::ApplyCommands::Bindings& buffers, uint32_t max_commands, uint32_t history_stride,
                           uint32_t pages_per_slot, uint32_t draft_pages_per_slot);

} // namespace auspex
