// One team per row reduces the row's chunks: softmax sums, and the best of their best tokens.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/logprobs_args.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint LANES = 8;
const uint TEAMS = 1;
#include "include/reduce.glsl"
#include "include/cut.glsl"
#include "include/ranking.glsl"

layout(push_constant) uniform Push { LogprobsArgs args; };
layout(std430, binding = kLogprobsRowsPartials) readonly buffer Partials { LogprobPartial partials[]; };
layout(std430, binding = kLogprobsRowsState) readonly buffer State { SlotState state[]; };
layout(std430, binding = kLogprobsRowsRows) readonly buffer Rows { Row rows[]; };
layout(std430, binding = kLogprobsRowsLogprobs) writeonly buffer Logprobs { LogprobRow logprobs[]; };

// The first token after the one that was taken last, of this lane's chunks, whose lists of n are in order.
void find_next(uint row, uint n, uint last_rank, uint last_id, out uint rank, out uint id, out float logit) {
    rank = kNoRank;
    id = kNoToken;
    logit = 0.0;
    for (uint c = row * args.n_chunks + lane_index(); c < (row + 1u) * args.n_chunks; c += LANES)
        for (uint i = 0u; i < n; ++i) {
            uint other_id = partials[c].best_ids[i];
            if (other_id == kNoToken) break;
            float other = partials[c].best_logits[i];
            if (!comes_after(rank_of(other), other_id, last_rank, last_id)) continue;
            take_first(rank, id, rank_of(other), other_id);
            if (id == other_id) logit = other;
            break;
        }
}

void main() {
    uint row = gl_WorkGroupID.x;
    uint at = args.first_row + row * args.row_step;
    if (rows[at].live == 0u) return;
    uint asked = state[rows[at].slot].logprobs;
    if (asked == 0u) return;

    uint lane = lane_index();
    float largest = kLowest;
    for (uint c = lane; c < args.n_chunks; c += LANES) largest = max(largest, partials[row * args.n_chunks + c].max);
    largest = lane_max(largest);
    precise float sum = 0.0;
    for (uint c = lane; c < args.n_chunks; c += LANES)
        sum = fma(partials[row * args.n_chunks + c].sum, exp(partials[row * args.n_chunks + c].max - largest), sum);
    sum = lane_sum(sum);
    if (lane == 0u) {
        logprobs[row].max = largest;
        logprobs[row].sum = sum;
    }

    uint n = min(asked - 1u, kMaxLogprobs);
    if (n == 0u) return;
    uint rank, id;
    float logit;
    find_next(row, n, kBeforeAll, 0u, rank, id, logit);
    for (uint i = 0u; i < n; ++i) {
        uint first_rank = rank, first_id = id;
        lane_first(first_rank, first_id);
        if (id != first_id || (id == kNoToken && lane != 0u)) continue;
        logprobs[row].best_ids[i] = id; // it is this lane's
        logprobs[row].best_logits[i] = logit;
        find_next(row, n, first_rank, first_id, rank, id, logit);
    }
}
