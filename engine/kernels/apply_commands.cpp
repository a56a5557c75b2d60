// Records the application of the host's commands.
#include "kernels/apply_commands.h"

namespace auspex {

void record_apply_commands(Recorder& to, const ops::ApplyCommands::Bindings& buffers, uint32_t max_commands, uint32_t history_stride,
                           uint32_t pages_per_slot, uint32_t draft_pages_per_slot) {
    const auto kernel = to.kernel<ops::ApplyCommands>();
    if (!kernel) return;
    to.cmd.dispatch(kernel, {1, 1, 1},
                    {.max_commands = max_commands,
                     .history_stride = history_stride,
                     .pages_per_slot = pages_per_slot,
                     .draft_pages_per_slot = draft_pages_per_slot},
                    buffers);
}

} // namespace auspex
