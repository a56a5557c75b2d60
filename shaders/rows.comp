// One workgroup; an invocation makes the rows of one batch entry at a time. Tokens of drafts are filled in by pick.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/rows_args.h"
#include "shared/round_rows.h"

layout(local_size_x_id = 0) in;

layout(push_constant) uniform Push { RowsArgs args; };
layout(std430, binding = kRowsBatch) readonly buffer Batch { uint batch[]; };
layout(std430, binding = kRowsState) readonly buffer State { SlotState state[]; };
layout(std430, binding = kRowsHistory) readonly buffer History { uint history[]; };
layout(std430, binding = kRowsRoundSlots) writeonly buffer RoundSlots { RoundSlot round_slots[]; };
layout(std430, binding = kRowsTarget) writeonly buffer Target { Row target_rows[]; };
layout(std430, binding = kRowsDraft) writeonly buffer Draft { Row draft_rows[]; };
layout(std430, binding = kRowsCounts) writeonly buffer Counts { uint counts[]; };

shared uint target_end; // largest position + 1 of a live row
shared uint draft_end;

// A row of a chain: `prefix_len` committed keys, then one drafted ancestor per position up to its own.
Row chain_row(uint token, uint slot, uint position, uint prefix_len, uint parent, bool live) {
    Row row;
    row.token = token;
    row.slot = slot;
    row.position = position;
    row.kv_index = position;
    row.prefix_len = prefix_len;
    row.live = live ? 1u : 0u;
    for (uint i = 0u; i < kMaxPath; ++i) row.path[i] = prefix_len + i;
    row.parent = parent;
    row.reserved = 0u;
    return row;
}

void main() {
    if (gl_LocalInvocationID.x == 0u) {
        target_end = 0u;
        draft_end = 0u;
    }
    barrier();
    for (uint b = gl_LocalInvocationID.x; b < args.batch; b += gl_WorkGroupSize.x) {
        uint slot = batch[b];
        uint safe_slot = slot == kNoSlot ? 0u : slot;
        bool live = slot != kNoSlot && state[safe_slot].live != 0u;
        uint start = live ? state[safe_slot].target_len : 0u;
        uint last_token = live ? state[safe_slot].last_token : 0u;
        uint drafted = live ? state[safe_slot].draft_cache_len : 0u;
        uint drafter = state[safe_slot].drafter;
        bool by_pass = drafts_by_pass(drafter);
        uint k = 0u;
        if (live && drafter != kDrafterNone) {
            uint n_tokens = start + 1u;
            uint room = state[safe_slot].max_context - min(state[safe_slot].max_context, n_tokens + 1u);
            k = min(min(args.draft_len, state[safe_slot].draft_len), room);
            // A draft cache may lack at most two rows, the last token's included.
            bool can_begin = args.model_drafts != 0u && (!fills_draft_cache(drafter) || drafted + 1u >= start);
            if (by_pass) k = can_begin ? min(k, args.draft_max_rows - min(args.draft_max_rows, start)) : 0u;
            else k = min(k, state[safe_slot].n_proposed);
        }
        round_slots[b] = RoundSlot(slot, k, start, live ? 1u : 0u, by_pass ? 0u : 1u);
        for (uint node = 0u; node < nodes_of(args.draft_len); ++node) {
            uint parent = node == 0u ? kNoRow : row_of(args.draft_len, b, parent_of(node));
            target_rows[row_of(args.draft_len, b, node)] = chain_row(node == 0u || by_pass ? last_token : state[safe_slot].proposed[node - 1u], safe_slot,
                                                                     position_of(start, node), start, parent, live && node <= k);
        }
        if (live) atomicMax(target_end, start + k + 1u);
        if (args.draft_len == 0u || args.model_drafts == 0u) continue;
        if (!by_pass) k = 0u; // no draft rows
        if (args.draft_lead != 0u) {
            bool lags = k > 0u && drafted + 1u == start;
            uint before = start > 0u ? start - 1u : 0u;
            uint previous = lags ? history[safe_slot * args.history_stride + before] : 0u;
            draft_rows[draft_pass_row(args.draft_lead, b, 0u) - 1u] = chain_row(previous, safe_slot, before, before, kNoRow, lags);
        }
        for (uint node = 0u; node < args.draft_len; ++node) {
            uint parent = node == 0u ? kNoRow : row_of(args.draft_len, b, parent_of(node));
            draft_rows[draft_pass_first_row(args.batch, node) + draft_pass_row(args.draft_lead, b, node)] =
                chain_row(node == 0u ? last_token : 0u, safe_slot, position_of(start, node), start, parent, node < k);
        }
        if (k > 0u) atomicMax(draft_end, start + k);
    }
    barrier();
    if (gl_LocalInvocationID.x == 0u) {
        uint draft_splits = (draft_end + args.split - 1u) / args.split;
        counts[kCountsTarget] = (target_end + args.split - 1u) / args.split;
        counts[kCountsTarget + 1u] = args.target_kv_heads;
        counts[kCountsTarget + 2u] = (args.batch * nodes_of(args.draft_len) + args.target_tile_rows - 1u) / args.target_tile_rows;
        counts[kCountsDraftFirst] = draft_splits;
        counts[kCountsDraftFirst + 1u] = args.draft_kv_heads;
        counts[kCountsDraftFirst + 2u] = (draft_pass_rows_per_entry(args.draft_lead, 0u) * args.batch + args.draft_first_tile_rows - 1u) / args.draft_first_tile_rows;
        counts[kCountsDraftNext] = draft_splits;
        counts[kCountsDraftNext + 1u] = args.draft_kv_heads;
        counts[kCountsDraftNext + 2u] = args.batch;
        counts[kCountsSearch] = 0u;
        counts[kCountsSearch + 1u] = 1u;
        counts[kCountsSearch + 2u] = 1u;
    }
}
