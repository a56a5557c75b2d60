// Draws the next token of every slot with temperature: an exponential race over the vocabulary, many workgroups per slot.
// The largest weight / E wins; E is the noise of (seed, position, purpose residual, token). One team per (chunk, entry).
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/accept_args.h"
#include "shared/round_rows.h"
#include "shared/vocab_args.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint LANES = 8;
const uint TEAMS = 1;
#include "include/reduce.glsl"
#include "include/random.glsl"
#include "include/vocab.glsl"
#include "include/probability.glsl"

layout(push_constant) uniform Push { AcceptRaceArgs args; };
layout(std430, binding = kRaceTargetLogits) readonly buffer TargetLogits { float target_logits[]; };
layout(std430, binding = kRaceDraftLogits) readonly buffer DraftLogits { float draft_logits[]; };
layout(std430, binding = kRaceTargetChoices) readonly buffer TargetChoices { VocabChoice target_choices[]; };
layout(std430, binding = kRaceDraftChoices) readonly buffer DraftChoices { VocabChoice draft_choices[]; };
layout(std430, binding = kRaceState) readonly buffer State { SlotState state[]; };
layout(std430, binding = kRaceRoundSlots) readonly buffer RoundSlots { RoundSlot round_slots[]; };
layout(std430, binding = kRacePlans) readonly buffer Plans { AcceptPlan plans[]; };
layout(std430, binding = kRacePartials) writeonly buffer Partials { RacePartial partials[]; };

void main() {
    uint b = gl_WorkGroupID.y;
    if (round_slots[b].live == 0u || plans[b].is_chosen != 0u) return;
    uint slot = round_slots[b].slot;
    float scale = 1.0 / state[slot].temperature;
    uvec2 seed = uvec2(state[slot].seed_low, state[slot].seed_high);
    uint next_row = plans[b].next_row;
    bool residual = plans[b].use_residual != 0u;
    bool one_hot = round_slots[b].one_hot != 0u;
    uint draft_token = plans[b].draft_token;
    float lenience = state[slot].lenience;
    uint position = position_after(position_of(round_slots[b].start, plans[b].accepted_len));
    uint target_row = row_of(args.draft_len, b, next_row);
    uint draft_row = residual ? draft_row_of(args.draft_len, b, next_row) : 0u;
    uint purpose = kPurposeResidual;

    VocabChoice target_choice = target_choices[target_row];
    VocabChoice draft_choice;
    if (residual && !one_hot) draft_choice = draft_choices[draft_row];

    uint lane = lane_index();
    uint begin = gl_WorkGroupID.x * kVocabChunk;
    uint end = min(begin + kVocabChunk, args.vocab);
    float residual_key = 0.0, target_key = 0.0;
    uint residual_id = 0xffffffffu, target_id = 0xffffffffu;
    for (uint quad = begin + 4u * lane; quad < end; quad += 4u * LANES) {
        vec4 target_logit = LOGIT_QUAD(target_logits, target_row * args.vocab, quad, end), target_ps;
        vec4 draft_logit = vec4(0.0);
        if (residual && !one_hot) draft_logit = LOGIT_QUAD(draft_logits, draft_row * args.draft_vocab, quad, args.draft_vocab);
        for (uint i = 0u; i < 4u; ++i) target_ps[i] = probability(target_logit[i], quad + i, scale, target_choice);
        uvec4 random = philox(uvec4(position, purpose, 0u, quad / 4u), seed);
        for (uint i = 0u; i < 4u; ++i) {
            uint id = quad + i;
            if (id >= end) continue;
            float e = exponential(random[i]);
            float target_p = target_ps[i];
            if (is_drawable(target_p)) take_better(target_key, target_id, target_p / e, id);
            if (residual) {
                float draft_p = 0.0;
                if (!one_hot) {
                    if (id < args.draft_vocab) draft_p = probability(draft_logit[i], id, scale, draft_choice);
                } else if (id == draft_token) draft_p = 1.0;
                precise float weight = target_p - lenience * draft_p;
                if (is_drawable(weight)) take_better(residual_key, residual_id, weight / e, id);
            }
        }
    }
    lane_best(residual_key, residual_id);
    lane_best(target_key, target_id);
    if (lane == 0u)
        partials[b * args.n_chunks + gl_WorkGroupID.x] = RacePartial(residual_key, residual_id, target_key, target_id);
}
