// One workgroup; an invocation makes one row at a time from (slot, position) and the token history.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/replay_rows_args.h"
#include "shared/slot_state.h"

layout(local_size_x = 64) in;

layout(push_constant) uniform Push { ReplayRowsArgs args; };
layout(std430, binding = kReplayList) readonly buffer List { uvec2 list[]; };
layout(std430, binding = kReplayHistory) readonly buffer History { uint history[]; };
layout(std430, binding = kReplayRows) writeonly buffer Rows { Row rows[]; };
layout(std430, binding = kReplayCounts) writeonly buffer Counts { uint counts[]; };

shared uint end; // largest position + 1 of a live row

void main() {
    if (gl_LocalInvocationID.x == 0u) end = 0u;
    barrier();
    for (uint r = gl_LocalInvocationID.x; r < args.n_rows; r += gl_WorkGroupSize.x) {
        bool live = list[r].x != kNoSlot;
        uint slot = live ? list[r].x : 0u;
        uint position = live ? list[r].y : 0u;
        Row row;
        row.token = live ? history[slot * args.history_stride + position] : 0u;
        row.slot = slot;
        row.position = position;
        row.kv_index = position;
        row.prefix_len = position;
        row.live = live ? 1u : 0u;
        for (uint i = 0u; i < kMaxPath; ++i) row.path[i] = position + i;
        row.parent = kNoRow;
        row.reserved = 0u;
        rows[r] = row;
        if (live) atomicMax(end, position + 1u);
    }
    barrier();
    if (gl_LocalInvocationID.x == 0u) {
        counts[0] = (end + args.split - 1u) / args.split;
        counts[1] = args.n_kv_heads;
        counts[2] = (args.n_rows + args.attention_rows - 1u) / args.attention_rows;
    }
}
