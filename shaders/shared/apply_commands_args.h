// apply_commands: the host's words written into GPU-owned state. One workgroup; no two commands name the same word.
#ifndef APPLY_COMMANDS_ARGS_H
#define APPLY_COMMANDS_ARGS_H
#include "slot_state.h"
SHARED_BEGIN

SHARED_CONST uint kApplyCount = 0u;       // 1 uint: number of commands
SHARED_CONST uint kApplyCommands = 1u;    // (n) SlotCommand
SHARED_CONST uint kApplyState = 2u;       // (slots, kSlotStateWords) uint
SHARED_CONST uint kApplyHistory = 3u;     // (slots, history_stride) uint
SHARED_CONST uint kApplyTargetPages = 4u; // (slots, pages_per_slot) uint
SHARED_CONST uint kApplyDraftPages = 5u;  // (slots, draft_pages_per_slot) uint
SHARED_CONST uint kApplyBiases = 6u;      // (slots, 2 · kMaxBiases) uint: TokenBias lists

struct ApplyCommandsArgs {
    uint max_commands; // bound of the buffer
    uint history_stride;
    uint pages_per_slot;
    uint draft_pages_per_slot;
};

SHARED_END
#endif
