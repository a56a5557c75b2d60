// One workgroup strides over the host's commands.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/apply_commands_args.h"

layout(local_size_x = 64) in;

layout(push_constant) uniform Push { ApplyCommandsArgs args; };
layout(std430, binding = kApplyCount) readonly buffer Count { uint n_commands; };
layout(std430, binding = kApplyCommands) readonly buffer Commands { SlotCommand commands[]; };
layout(std430, binding = kApplyState) writeonly buffer State { uint state[]; };
layout(std430, binding = kApplyHistory) writeonly buffer History { uint history[]; };
layout(std430, binding = kApplyTargetPages) writeonly buffer TargetPages { uint target_pages[]; };
layout(std430, binding = kApplyDraftPages) writeonly buffer DraftPages { uint draft_pages[]; };
layout(std430, binding = kApplyBiases) writeonly buffer Biases { uint biases[]; };

void main() {
    uint n = min(n_commands, args.max_commands);
    for (uint i = gl_LocalInvocationID.x; i < n; i += gl_WorkGroupSize.x) {
        SlotCommand c = commands[i];
        if (c.op == kCommandState) state[c.slot * kSlotStateWords + c.index] = c.value;
        else if (c.op == kCommandHistory) history[c.slot * args.history_stride + c.index] = c.value;
        else if (c.op == kCommandTargetPage) target_pages[c.slot * args.pages_per_slot + c.index] = c.value;
        else if (c.op == kCommandDraftPage) draft_pages[c.slot * args.draft_pages_per_slot + c.index] = c.value;
        else if (c.op == kCommandBias) biases[c.slot * 2u * kMaxBiases + c.index] = c.value;
    }
}
