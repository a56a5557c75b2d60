// One workgroup per (node, entry): the token that the node's row gave, if it gave one, and its logit as the head left it. Where logits
// were edited, that is among those that were kept, unless neither the row's context nor the slot's biases have the token.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/logprobs_args.h"
#include "shared/round_rows.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 64;

layout(push_constant) uniform Push { LogprobsChosenArgs args; };
layout(std430, binding = kLogprobsChosenLogits) readonly buffer Logits { float logits[]; };
layout(std430, binding = kLogprobsChosenState) readonly buffer State { SlotState state[]; };
layout(std430, binding = kLogprobsChosenRoundSlots) readonly buffer RoundSlots { RoundSlot round_slots[]; };
layout(std430, binding = kLogprobsChosenHistory) readonly buffer History { uint history[]; };
layout(std430, binding = kLogprobsChosenBiases) readonly buffer Biases { TokenBias biases[]; };
layout(std430, binding = kLogprobsChosenKept) readonly buffer Kept { float kept[]; };
layout(std430, binding = kLogprobsChosenLogprobs) writeonly buffer Logprobs { LogprobRow logprobs[]; };

const uint kNowhere = 0xffffffffu;
shared uint place; // of the token among the kept logits

void main() {
    uint node = gl_WorkGroupID.x;
    uint b = gl_WorkGroupID.y;
    if (round_slots[b].live == 0u) return;
    uint slot = round_slots[b].slot;
    uint start = round_slots[b].start;
    if (state[slot].logprobs == 0u || node >= state[slot].target_len - start) return;

    uint lane = gl_LocalInvocationIndex;
    uint text = slot * args.history_stride;
    uint position = position_of(start, node);
    uint token = history[text + position_after(position)];
    if (lane == 0u) place = kNowhere;
    barrier();
    if (args.with_kept != 0u) {
        for (uint i = lane; i <= position; i += THREADS)
            if (history[text + i] == token) atomicMin(place, i);
        for (uint i = lane; i < min(state[slot].n_biases, kMaxBiases); i += THREADS)
            if (biases[slot * kMaxBiases + i].token == token) atomicMin(place, args.history_stride + i);
    }
    barrier();
    if (lane != 0u) return;
    uint row = row_of(args.draft_len, b, node);
    logprobs[row].token = token;
    logprobs[row].logit = place == kNowhere ? logits[row * args.vocab + token] : kept[row * kept_words_of(args.history_stride) + place];
}
