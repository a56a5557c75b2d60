// One team per (chunk, row): the chunk's softmax sums at temperature 1, and as many of its best tokens as the row's slot asks for. A
// logit that is no number has no part in the sums, and comes last.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/logprobs_args.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint LANES = 8;
const uint TEAMS = 1;
#include "include/reduce.glsl"
#include "include/cut.glsl"
#include "include/logit_quad.glsl"
#include "include/ranking.glsl"

layout(push_constant) uniform Push { LogprobsArgs args; };
layout(std430, binding = kLogprobsPartialsLogits) readonly buffer Logits { float logits[]; };
layout(std430, binding = kLogprobsPartialsState) readonly buffer State { SlotState state[]; };
layout(std430, binding = kLogprobsPartialsRows) readonly buffer Rows { Row rows[]; };
layout(std430, binding = kLogprobsPartialsPartials) writeonly buffer Partials { LogprobPartial partials[]; };

uint begin, end, base;

// Which logits of a LOGIT_QUAD have a part in the sums.
bvec4 numbers_of(vec4 four, uint quad) {
    bvec4 counts;
    for (uint i = 0u; i < 4u; ++i) counts[i] = all(bvec2(quad + i < end, is_number(four[i])));
    return counts;
}

// This lane's first token after the one that was taken last.
void find_next(uint last_rank, uint last_id, out uint rank, out uint id) {
    rank = kNoRank;
    id = kNoToken;
    for (uint quad = begin + 4u * lane_index(); quad < end; quad += 4u * LANES) {
        vec4 four = LOGIT_QUAD(logits, base, quad, end);
        uvec4 ranks;
        bvec4 follows;
        for (uint i = 0u; i < 4u; ++i) {
            ranks[i] = rank_of(four[i]);
            follows[i] = all(bvec2(quad + i < end, comes_after(ranks[i], quad + i, last_rank, last_id)));
        }
        for (uint i = 0u; i < 4u; ++i)
            if (follows[i]) take_first(rank, id, ranks[i], quad + i);
    }
}

void main() {
    uint row = gl_WorkGroupID.y;
    uint at = args.first_row + row * args.row_step;
    if (rows[at].live == 0u) return;
    uint asked = state[rows[at].slot].logprobs;
    if (asked == 0u) return;

    uint lane = lane_index();
    begin = gl_WorkGroupID.x * kVocabChunk;
    end = min(begin + kVocabChunk, args.vocab);
    base = (args.first_logits + row * args.logits_step) * args.vocab;
    uint chunk = row * args.n_chunks + gl_WorkGroupID.x;
    float largest = kLowest;
    for (uint quad = begin + 4u * lane; quad < end; quad += 4u * LANES) {
        vec4 four = LOGIT_QUAD(logits, base, quad, end);
        bvec4 counts = numbers_of(four, quad);
        for (uint i = 0u; i < 4u; ++i)
            if (counts[i]) largest = max(largest, four[i]);
    }
    largest = lane_max(largest);
    precise float sum = 0.0;
    for (uint quad = begin + 4u * lane; quad < end; quad += 4u * LANES) {
        vec4 four = LOGIT_QUAD(logits, base, quad, end);
        bvec4 counts = numbers_of(four, quad);
        for (uint i = 0u; i < 4u; ++i) {
            if (!counts[i]) continue;
            precise float distance = four[i] - largest;
            sum += exp(distance);
        }
    }
    sum = lane_sum(sum);
    if (lane == 0u) {
        partials[chunk].max = largest;
        partials[chunk].sum = sum;
    }

    uint n = min(asked - 1u, kMaxLogprobs);
    if (n == 0u) return;
    uint rank, id;
    find_next(kBeforeAll, 0u, rank, id);
    for (uint i = 0u; i < n; ++i) {
        uint first_rank = rank, first_id = id;
        lane_first(first_rank, first_id);
        if (id != first_id || (id == kNoToken && lane != 0u)) continue;
        partials[chunk].best_ids[i] = id; // it is this lane's
        partials[chunk].best_logits[i] = id == kNoToken ? 0.0 : logits[base + id];
        find_next(first_rank, first_id, rank, id);
    }
}
