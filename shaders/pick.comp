// One workgroup per row reduces the row's chunks; for drafts the token goes on to the rows that wait for it.
// BEST: the chunks are BestTokens, and several teams share them.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "shared/round_rows.h"
#include "shared/vocab_args.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint LANES = 8;
layout(constant_id = 2) const uint TEAMS = 1; // 1 unless BEST
#ifdef BEST
#define PARTIAL BestToken
#else
#define PARTIAL VocabChoice
#endif
#include "include/reduce.glsl"
#include "include/vocab.glsl"

layout(push_constant) uniform Push { PickArgs args; };
layout(std430, binding = kPickPartials) readonly buffer Partials { PARTIAL partials[]; };
layout(std430, binding = kPickChoices) writeonly buffer Choices { VocabChoice choices[]; };
layout(std430, binding = kPickTargetRows) buffer TargetRows { Row target_rows[]; };
layout(std430, binding = kPickDraftRows) buffer DraftRows { Row draft_rows[]; };
layout(std430, binding = kPickRoundSlots) readonly buffer RoundSlots { RoundSlot round_slots[]; };
layout(std430, binding = kPickCuts) readonly buffer Cuts { Cut cuts[]; };

void main() {
    uint row = gl_WorkGroupID.x;
    float best = kLowest;
    uint best_id = kNoToken;
#ifdef BEST
    for (uint c = gl_LocalInvocationIndex; c < args.n_chunks; c += 4u * LANES * TEAMS) {
        BestToken chunks[4]; // on their way together; those after the last are the last once more
        [[unroll]] for (uint i = 0u; i < 4u; ++i) chunks[i] = partials[row * args.n_chunks + min(c + i * LANES * TEAMS, args.n_chunks - 1u)];
        [[unroll]] for (uint i = 0u; i < 4u; ++i) take_better(best, best_id, chunks[i].key, chunks[i].id);
    }
    team_best(best, best_id);
    float largest = best;
    float sum = 0.0;
#else
    float largest = kLowest;
    uint lane = lane_index();
    for (uint c = lane; c < args.n_chunks; c += 4u * LANES) {
        VocabChoice chunks[4]; // on their way together; those after the last are the last once more
        [[unroll]] for (uint i = 0u; i < 4u; ++i) chunks[i] = partials[row * args.n_chunks + min(c + i * LANES, args.n_chunks - 1u)];
        [[unroll]] for (uint i = 0u; i < 4u; ++i) {
            take_better(best, best_id, chunks[i].best, chunks[i].best_id);
            largest = max(largest, chunks[i].max);
        }
    }
    lane_best(best, best_id);
    largest = lane_max(largest);
    precise float sum = 0.0;
    for (uint c = lane; c < args.n_chunks; c += 4u * LANES) {
        vec4 maxima, sums;
        [[unroll]] for (uint i = 0u; i < 4u; ++i) {
            maxima[i] = partials[row * args.n_chunks + min(c + i * LANES, args.n_chunks - 1u)].max;
            sums[i] = partials[row * args.n_chunks + min(c + i * LANES, args.n_chunks - 1u)].sum;
        }
        [[unroll]] for (uint i = 0u; i < 4u; ++i) {
            precise float more = fma(sums[i], exp(maxima[i] - largest), sum);
            sum = c + i * LANES < args.n_chunks ? more : sum; // those after the last count no more
        }
    }
    sum = lane_sum(sum);
#endif
    if (gl_LocalInvocationIndex != 0u) return;
    if (best_id == kNoToken) best_id = 0u; // a row of NaN, or one that did not take part
    Cut cut = kKeepAll;
    if (args.with_cuts != 0u) cut = Cut(cuts[row].logit, cuts[row].last_id);
    choices[args.forward != 0u ? draft_row_of(args.draft_len, row, args.node) : row] = VocabChoice(best, best_id, largest, sum, cut.logit, cut.last_id);
    if (args.forward == 0u || round_slots[row].one_hot != 0u) return; // proposed drafts stand
    uint next = args.node + 1u;
    target_rows[row_of(args.draft_len, row, next)].token = best_id;
    if (next < args.draft_len) draft_rows[draft_pass_first_row(args.batch, next) + draft_pass_row(0u, row, next)].token = best_id;
}
