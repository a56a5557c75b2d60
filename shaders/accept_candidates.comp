// Several proposals for one position. Multi-step speculative sampling: Miao et al. 2024 (SpecInfer), algorithm 2,
// VerifyStochastic; for one proposal it is Leviathan et al. 2023, algorithm 1, with the same bits as accept_test and
// accept_race. With r_1 = target, candidate i is accepted with probability min(1, r_i(x_i) / draft_i(x_i)),
// else r_{i+1} = norm(max(0, r_i - draft_i)); when none is, the token is drawn from r_{n+1}. Every proposal that was drawn
// counts, equal ones too, but none whose own probability is no number above 0: it was not drawn from that row. Greedy and coupled: accept what the target would have taken. Lenience is not heeded.
// One team per entry, and nothing is stored between the stages: r_{i+1} of a token is worked out anew from its i + 1
// probabilities, O(n² · vocab) exponentials. Right rather than fast.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/accept_candidates_args.h"
#include "shared/vocab_args.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint LANES = 8;
const uint TEAMS = 1;
#include "include/reduce.glsl"
#include "include/random.glsl"
#include "include/vocab.glsl"
#include "include/probability.glsl"

layout(push_constant) uniform Push { AcceptCandidatesArgs args; };
layout(std430, binding = kCandidatesTargetLogits) readonly buffer TargetLogits { float target_logits[]; };
layout(std430, binding = kCandidatesDraftLogits) readonly buffer DraftLogits { float draft_logits[]; };
layout(std430, binding = kCandidatesTargetChoices) readonly buffer TargetChoices { VocabChoice target_choices[]; };
layout(std430, binding = kCandidatesDraftChoices) readonly buffer DraftChoices { VocabChoice draft_choices[]; };
layout(std430, binding = kCandidatesState) readonly buffer State { SlotState state[]; };
layout(std430, binding = kCandidatesEntries) readonly buffer Entries { CandidateEntry entries[]; };
layout(std430, binding = kCandidatesList) readonly buffer Candidates { Candidate candidates[]; };
layout(std430, binding = kCandidatesOutcomes) writeonly buffer Outcomes { CandidateOutcome outcomes[]; };

CandidateEntry entry;
float scale;                // 1 / temperature
float sums[kMaxCandidates]; // [j]: Σ max(0, r - draft) over the vocabulary, r being what candidate j was tested against
uint drawn;                 // bit j: candidate j may have been drawn from its row; of those that were tested

float draft_probability(uint j, uint id) {
    Candidate c = candidates[entry.first + j];
    if (c.one_hot != 0u) return id == c.token ? 1.0 : 0.0;
    if (id >= args.draft_vocab) return 0.0;
    return probability(draft_logits[c.draft_row * args.draft_vocab + id], id, scale, draft_choices[c.draft_row]);
}

// max(0, r - draft) of candidate n - 1, not normalised; the target where n = 0.
float unnormalised(uint n, uint id) {
    precise float r = probability(target_logits[entry.target_row * args.vocab + id], id, scale, target_choices[entry.target_row]);
    if (!is_drawable(r)) return 0.0;
    for (uint j = 0u; j < n; ++j) {
        if ((drawn & 1u << j) == 0u) continue;
        r = max(0.0, r - draft_probability(j, id));
        if (j + 1u < n) r = r / sums[j];
    }
    return r;
}

// Σ unnormalised(n, ·): in a lane over each chunk, over the chunks, over the lanes.
float total(uint n) {
    uint lane = lane_index();
    precise float sum = 0.0;
    for (uint begin = 0u; begin < args.vocab; begin += kVocabChunk) {
        uint end = min(begin + kVocabChunk, args.vocab);
        precise float of_chunk = 0.0;
        for (uint id = begin + lane; id < end; id += LANES) of_chunk += unnormalised(n, id);
        sum += of_chunk;
    }
    return lane_sum(sum);
}

// Draws from unnormalised(n, ·), and from the target where that is empty by rounding.
uint race(uint n, uvec2 seed) {
    float key = 0.0, target_key = 0.0;
    uint id = 0xffffffffu, target_id = 0xffffffffu;
    for (uint quad = 4u * lane_index(); quad < args.vocab; quad += 4u * LANES) {
        uvec4 random = philox(uvec4(entry.position, kPurposeResidual, 0u, quad / 4u), seed);
        for (uint i = 0u; i < min(4u, args.vocab - quad); ++i) {
            float e = exponential(random[i]);
            float target_p = unnormalised(0u, quad + i), weight = unnormalised(n, quad + i);
            if (target_p > 0.0) take_better(target_key, target_id, target_p / e, quad + i);
            if (weight > 0.0) take_better(key, id, weight / e, quad + i);
        }
    }
    lane_best(key, id);
    lane_best(target_key, target_id);
    if (key > 0.0) return id;
    return target_key > 0.0 ? target_id : 0u; // a row without probabilities
}

void main() {
    entry = entries[gl_WorkGroupID.x];
    if (entry.live == 0u) return;
    float temperature = state[entry.slot].temperature;
    bool greedy = temperature == 0.0;
    bool compares = greedy || state[entry.slot].acceptance == kAcceptCoupled;
    scale = greedy ? 1.0 : 1.0 / temperature;
    uvec2 seed = uvec2(state[entry.slot].seed_low, state[entry.slot].seed_high);

    drawn = 0u;
    uint tested = 0u;
    uint accepted = entry.n;
    uint token = target_choices[entry.target_row].best_id;
    for (; tested < entry.n && accepted == entry.n; ++tested) {
        uint x = candidates[entry.first + tested].token;
        if (compares) {
            if (x == token) accepted = tested;
            continue;
        }
        if (tested > 0u) {
            sums[tested - 1u] = total(tested);
            if (!(sums[tested - 1u] > 0.0)) break; // rejected by rounding alone: nothing is left to test against
        }
        precise float r = unnormalised(tested, x);
        if (tested > 0u) r = r / sums[tested - 1u];
        uint random = philox(uvec4(entry.position, kPurposeAccept, tested, 0u), seed).x;
        float draft_p = draft_probability(tested, x);
        bool rejects = !is_drawable(draft_p);
        if (!rejects) drawn |= 1u << tested;
        precise float scaled = uniform01(random) * draft_p;
        if (!rejects && scaled < r) {
            accepted = tested;
            token = x;
        }
    }
    if (accepted == entry.n && !compares) token = race(tested, seed);
    if (lane_index() == 0u) outcomes[gl_WorkGroupID.x] = CandidateOutcome(accepted, token);
}
