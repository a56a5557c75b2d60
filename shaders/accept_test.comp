// One invocation per batch entry: tests its drafts in order and chooses the row that gives the next token.
// Leviathan et al. 2023, algorithm 1: accept draft t with probability min(1, target(t) / (lenience · draft(t))); lenience
// below 1 is their appendix A.5, not lossless. A draft whose probability is no number above 0 was not drawn from it, and is
// rejected. Greedy and coupled: accept what the target would have taken. Simulated: a
// coin decides, so that speed can be measured at any acceptance; the text means nothing.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/accept_args.h"
#include "shared/round_rows.h"
#include "include/random.glsl"
#include "include/probability.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant) uniform Push { AcceptTestArgs args; };
layout(std430, binding = kTestTargetLogits) readonly buffer TargetLogits { float target_logits[]; };
layout(std430, binding = kTestDraftLogits) readonly buffer DraftLogits { float draft_logits[]; };
layout(std430, binding = kTestTargetChoices) readonly buffer TargetChoices { VocabChoice target_choices[]; };
layout(std430, binding = kTestDraftChoices) readonly buffer DraftChoices { VocabChoice draft_choices[]; };
layout(std430, binding = kTestState) readonly buffer State { SlotState state[]; };
layout(std430, binding = kTestRoundSlots) readonly buffer RoundSlots { RoundSlot round_slots[]; };
layout(std430, binding = kTestTargetRows) readonly buffer TargetRows { Row target_rows[]; };
layout(std430, binding = kTestPlans) writeonly buffer Plans { AcceptPlan plans[]; };

void main() {
    uint b = gl_GlobalInvocationID.x;
    if (b >= args.batch || round_slots[b].live == 0u) return;
    uint slot = round_slots[b].slot;
    uint k = round_slots[b].draft_len;
    uint row0 = row_of(args.draft_len, b, 0u);
    float temperature = state[slot].temperature;
    bool greedy = temperature == 0.0;
    bool simulates = state[slot].acceptance == kAcceptSimulated;
    bool compares = greedy || state[slot].acceptance == kAcceptCoupled;
    float lenience = state[slot].lenience;
    float scale = greedy ? 1.0 : 1.0 / temperature;
    uvec2 seed = uvec2(state[slot].seed_low, state[slot].seed_high);

    uint accepted = 0u;
    float overlap = 0.0;
    for (; accepted < k; ++accepted) {
        uint token = target_rows[row0 + accepted + 1u].token;
        uint position = position_after(target_rows[row0 + accepted].position);
        if (simulates) {
            overlap += state[slot].simulated_alpha; // its own unbiased estimate
            uint r = philox(uvec4(position, kPurposeSimulate, 0u, 0u), seed).x;
            if (!(uniform01(r) < state[slot].simulated_alpha)) break;
            continue;
        }
        if (compares) {
            VocabChoice choice = target_choices[row0 + accepted];
            bool passes = token == choice.best_id;
            // A.5 for the argmax: target(t) ≥ lenience · max target, as distances of logits.
            if (greedy && lenience < 1.0) {
                float logit = target_logits[(row0 + accepted) * args.vocab + token];
                passes = passes || (is_kept(logit, token, choice.cut_logit, choice.cut_last_id) && logit - choice.best >= log(lenience));
            }
            if (!passes) break;
            overlap += 1.0;
            continue;
        }
        uint draft_row = draft_row_of(args.draft_len, b, accepted);
        uint r = philox(uvec4(position, kPurposeAccept, 0u, 0u), seed).x;
        precise float target_p = probability(target_logits[(row0 + accepted) * args.vocab + token], token, scale, target_choices[row0 + accepted]);
        precise float draft_p = 1.0;
        if (round_slots[b].one_hot == 0u)
            draft_p = probability(draft_logits[draft_row * args.draft_vocab + token], token, scale, draft_choices[draft_row]);
        if (!is_drawable(target_p) || !is_drawable(draft_p)) break;
        overlap += min(1.0, target_p / draft_p);
        precise float scaled = uniform01(r) * (lenience * draft_p);
        if (!(scaled < target_p)) break;
    }
    uint not_finite = 0u;
    for (uint j = 0u; j <= accepted; ++j) not_finite |= is_finite(target_choices[row0 + j]) ? 0u : 1u << j;
    uint rejected_row = accepted;
    bool is_chosen = compares;
    plans[b] = AcceptPlan(accepted, rejected_row, accepted < k ? 1u : 0u, is_chosen ? 1u : 0u, target_choices[row0 + accepted].best_id,
                          accepted < k ? target_rows[row0 + accepted + 1u].token : 0xffffffffu, overlap, not_finite);
}
