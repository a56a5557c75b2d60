// One team per (chunk, row): the best key of the chunk and, for rows with temperature, the softmax sums of logit / T.
// Memory-bound. The key is the logit (greedy), logit / T, or logit / T plus Gumbel noise (drafts with temperature, and
// where acceptance is coupled the target's rows too, with the same noise).
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/round_rows.h"
#include "shared/vocab_args.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint LANES = 8;
const uint TEAMS = 1;
#include "include/reduce.glsl"
#include "include/random.glsl"
#include "include/vocab.glsl"

layout(push_constant) uniform Push { VocabPartialsArgs args; };
layout(std430, binding = kVocabLogits) readonly buffer Logits { float logits[]; };
layout(std430, binding = kVocabState) readonly buffer State { SlotState state[]; };
layout(std430, binding = kVocabRows) readonly buffer Rows { Row rows[]; };
layout(std430, binding = kVocabPartials) writeonly buffer Partials { VocabChoice partials[]; };
layout(std430, binding = kVocabCuts) readonly buffer Cuts { Cut cuts[]; };

void main() {
    uint row = gl_WorkGroupID.y;
    uint at = args.first_row + row * args.row_step;
    if (rows[at].live == 0u) return;
    uint slot = rows[at].slot;
    uint position = position_after(rows[at].position);
    float temperature = state[slot].temperature;
    uvec2 seed = uvec2(state[slot].seed_low, state[slot].seed_high);
    bool greedy = temperature == 0.0;
    float scale = greedy ? 1.0 : 1.0 / temperature;
    bool coupled = state[slot].acceptance == kAcceptCoupled;
    bool noisy = !greedy && (args.of_draft != 0u || coupled);
    uint purpose = coupled ? kPurposeCoupled : kPurposeDraft;
    Cut cut = kKeepAll;
    if (args.with_cuts != 0u) cut = Cut(cuts[row].logit, cuts[row].last_id);

    uint lane = lane_index();
    uint begin = gl_WorkGroupID.x * kVocabChunk;
    uint end = min(begin + kVocabChunk, args.vocab);
    uint base = (args.first_logits + row * args.logits_step) * args.vocab;
    float largest = kLowest;
    float best = kLowest;
    uint best_id = kNoToken;
    for (uint quad = begin + 4u * lane; quad < end; quad += 4u * LANES) {
        vec4 four = LOGIT_QUAD(logits, base, quad, end);
        bvec4 kept = kept_of(four, quad, end, cut);
        uvec4 random = noisy ? philox(uvec4(position, purpose, 0u, quad / 4u), seed) : uvec4(0u);
        for (uint i = 0u; i < 4u; ++i) {
            if (!kept[i]) continue;
            precise float z = four[i] * scale;
            largest = max(largest, z);
            precise float key = z;
            if (noisy) key = gumbel_key(z, random[i]);
            take_better(best, best_id, key, quad + i);
        }
    }
    lane_best(best, best_id);
    precise float sum = 0.0;
    if (!greedy) {
        largest = lane_max(largest);
        for (uint quad = begin + 4u * lane; quad < end; quad += 4u * LANES) {
            vec4 four = LOGIT_QUAD(logits, base, quad, end);
            bvec4 kept = kept_of(four, quad, end, cut);
            for (uint i = 0u; i < 4u; ++i) {
                if (!kept[i]) continue;
                precise float z = four[i] * scale;
                sum += exp(z - largest);
            }
        }
        sum = lane_sum(sum);
    }
    if (lane == 0u) partials[row * args.n_chunks + gl_WorkGroupID.x] = VocabChoice(best, best_id, largest, sum, 0.0, 0u);
}
