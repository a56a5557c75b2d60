// One workgroup per (block of kKeptBlock words, row): copies every logit that edit_logits may change in the row: of each token of its
// context, by position, and of each biased token, by its place in the slot's list. So much is kept, instead of the row: the token that
// will be chosen is not known yet, but if it is none of these, its logit stays as it is.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/logprobs_args.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 64;

layout(push_constant) uniform Push { LogprobsArgs args; };
layout(std430, binding = kLogprobsKeepLogits) readonly buffer Logits { float logits[]; };
layout(std430, binding = kLogprobsKeepState) readonly buffer State { SlotState state[]; };
layout(std430, binding = kLogprobsKeepRows) readonly buffer Rows { Row rows[]; };
layout(std430, binding = kLogprobsKeepHistory) readonly buffer History { uint history[]; };
layout(std430, binding = kLogprobsKeepTargetRows) readonly buffer TargetRows { Row target_rows[]; };
layout(std430, binding = kLogprobsKeepBiases) readonly buffer Biases { TokenBias biases[]; };
layout(std430, binding = kLogprobsKeepKept) writeonly buffer Kept { float kept[]; };

void main() {
    uint row = gl_WorkGroupID.y;
    uint of = args.first_row + row * args.row_step;
    if (rows[of].live == 0u) return;
    uint slot = rows[of].slot;
    if (state[slot].logprobs == 0u) return;

    uint n_words = kept_words_of(args.history_stride);
    uint n_biases = min(state[slot].n_biases, kMaxBiases);
    uint base = (args.first_logits + row * args.logits_step) * args.vocab;
    uint begin = gl_WorkGroupID.x * kKeptBlock;
    uint end = min(begin + kKeptBlock, n_words);
    for (uint i = begin + gl_LocalInvocationIndex; i < end; i += THREADS) {
        if (i <= rows[of].prefix_len && i < args.history_stride)
            kept[row * n_words + i] = logits[base + history[slot * args.history_stride + i]];
        else if (i >= args.history_stride && i - args.history_stride < n_biases)
            kept[row * n_words + i] = logits[base + biases[slot * kMaxBiases + i - args.history_stride].token];
    }
    if (gl_WorkGroupID.x != 0u || gl_LocalInvocationIndex != 0u) return;
    // From the row's own draft to the first of the round, which follows what is committed.
    uint token = rows[of].token;
    uint parent = rows[of].parent;
    uint position = rows[of].position;
    for (uint i = 0u; i < kMaxPath && parent != kNoRow; ++i) {
        if (position < args.history_stride) kept[row * n_words + position] = logits[base + token];
        token = target_rows[parent].token;
        parent = target_rows[parent].parent;
        --position;
    }
}
