// Records the application of the host's commands.
#include "kernels/apply_commands.h"

#include "shared/apply_commands_args.h"

namespace auspex {

void record_apply_commands(Recorder& to, const CommandTargets& buffers, uint32_t max_commands, uint32_t history_stride,
                           uint32_t pages_per_slot, uint32_t draft_pages_per_slot) {
    const Kernel* kernel = to.kernel({"apply_commands", 7, sizeof(gpu::ApplyCommandsArgs), false, {}});
    if (!kernel) return;
    to.cmd.dispatch(*kernel, {1, 1, 1},
                    gpu::ApplyCommandsArgs{.max_commands = max_commands,
                                           .history_stride = history_stride,
                                           .pages_per_slot = pages_per_slot,
                                           .draft_pages_per_slot = draft_pages_per_slot},
                    {buffers.count, buffers.commands, buffers.state, buffers.history, buffers.target_pages, buffers.draft_pages,
                     buffers.biases});
}

} // namespace auspex
