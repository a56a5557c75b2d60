// One workgroup per (chunk, row): counts the chunk's tokens in the row's context, then penalises those it saw (repetition,
// presence, frequency) and adds the slot's biases, in place. The context is every committed token and the drafts from the row's
// own up to the first, so nothing is kept between rounds. Logits that neither touches keep their bits.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "shared/edit_logits_args.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 64;

layout(push_constant) uniform Push { EditLogitsArgs args; };
layout(std430, binding = kEditLogits) buffer Logits { float logits[]; };
layout(std430, binding = kEditState) readonly buffer State { SlotState state[]; };
layout(std430, binding = kEditRows) readonly buffer Rows { Row rows[]; };
layout(std430, binding = kEditHistory) readonly buffer History { uint history[]; };
layout(std430, binding = kEditTargetRows) readonly buffer TargetRows { Row target_rows[]; };
layout(std430, binding = kEditBiases) readonly buffer Biases { TokenBias biases[]; };

const uint kTogether = 8u; // tokens of the text that an invocation asks for before it counts the first

shared uint seen[kVocabChunk]; // times in the context
shared float bias[kVocabChunk];

void main() {
    uint row = gl_WorkGroupID.y;
    uint of = args.first_row + row * args.row_step;
    if (rows[of].live == 0u) return;
    uint slot = rows[of].slot;
    float repeat = state[slot].repeat_penalty;
    float presence = state[slot].presence_penalty;
    float frequency = state[slot].frequency_penalty;
    uint n_biases = min(state[slot].n_biases, kMaxBiases);
    bool penalises = repeat != 1.0 || presence != 0.0 || frequency != 0.0;
    if (!penalises && n_biases == 0u) return;

    uint lane = gl_LocalInvocationIndex;
    uint begin = gl_WorkGroupID.x * kVocabChunk;
    uint n = min(kVocabChunk, args.vocab - begin);
    for (uint i = lane; i < kVocabChunk; i += THREADS) {
        seen[i] = 0u;
        if (n_biases > 0u) bias[i] = 0.0;
    }
    barrier();
    if (penalises) {
        uint last = rows[of].prefix_len, text = slot * args.history_stride;
        for (uint first = lane; first <= last; first += kTogether * THREADS) {
            uint at[kTogether]; // a token of another chunk wraps to an index beyond n
            [[unroll]] for (uint i = 0u; i < kTogether; ++i) at[i] = history[text + min(first + i * THREADS, last)] - begin;
            [[unroll]] for (uint i = 0u; i < kTogether; ++i)
                if (all(bvec2(at[i] < n, first + i * THREADS <= last))) atomicAdd(seen[at[i]], 1u);
        }
        if (lane == 0u) {
            uint token = rows[of].token;
            uint parent = rows[of].parent;
            for (uint i = 0u; i < kMaxPath && parent != kNoRow; ++i) {
                uint at = token - begin;
                if (at < n) atomicAdd(seen[at], 1u);
                token = target_rows[parent].token;
                parent = target_rows[parent].parent;
            }
        }
    }
    for (uint i = lane; i < n_biases; i += THREADS) { // no token twice
        uint at = biases[slot * kMaxBiases + i].token - begin;
        if (at < n) bias[at] = biases[slot * kMaxBiases + i].bias;
    }
    barrier();
    uint base = (args.first_logits + row * args.logits_step) * args.vocab + begin;
    for (uint i = lane; i < n; i += THREADS) {
        float added = n_biases > 0u ? bias[i] : 0.0;
        if (seen[i] == 0u && added == 0.0) continue;
        precise float z = logits[base + i];
        if (seen[i] > 0u) {
            if (repeat != 1.0) z = z > 0.0 ? z / repeat : z * repeat;
            precise float penalty = float(seen[i]) * frequency;
            z = z - presence;
            z = z - penalty;
        }
        if (added != 0.0) z = z + added;
        logits[base + i] = z;
    }
}
