// One workgroup per row: the last digit, the id up to which equal logits are kept, and min_p: the row's Cut. Rows that ask
// for nothing keep all.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/truncate_args.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 64;

layout(push_constant) uniform Push { TruncateArgs args; };
layout(std430, binding = kTruncateLogits) readonly buffer Logits { float logits[]; };
layout(std430, binding = kTruncateState) readonly buffer State { SlotState state[]; };
layout(std430, binding = kTruncateRows) readonly buffer Rows { Row rows[]; };
layout(std430, binding = kTruncateScratch) buffer Scratch { uint scratch[]; };
layout(std430, binding = kTruncateCuts) writeonly buffer Cuts { Cut cuts[]; };
#include "include/select.glsl"

const float kInfinity = 1.0 / 0.0;
const uint kPart = kVocabChunk / THREADS; // tokens per invocation, in a row

shared uint largest;  // key
shared uint n_equals; // found so far
shared uint equals_of[THREADS];
shared uint found_id;

// The id of the n-th token with this key. Chunks whose largest key is smaller are passed over.
uint id_of_equal(uint row, uint key, uint n) {
    uint lane = gl_LocalInvocationIndex;
    uint base = (args.first_logits + row * args.logits_step) * args.vocab;
    if (lane == 0u) {
        n_equals = 0u;
        found_id = 0xffffffffu;
    }
    barrier();
    uint before = 0u;
    for (uint chunk = 0u; chunk < args.n_chunks; ++chunk) {
        if (scratch[scratch_of(row) + chunk] < key) continue;
        uint begin = chunk * kVocabChunk + lane * kPart;
        uint end = min(begin + kPart, args.vocab);
        uint mine = 0u;
        for (uint i = begin; i < end; ++i) mine += key_of(logits[base + i]) == key ? 1u : 0u;
        atomicAdd(n_equals, mine);
        equals_of[lane] = mine;
        barrier();
        uint reached = n_equals;
        if (reached >= n) {
            for (uint i = 0u; i < lane; ++i) before += equals_of[i];
            for (uint i = begin; i < end && before < n; ++i)
                if (key_of(logits[base + i]) == key && ++before == n) found_id = i;
            break;
        }
        before = reached;
        barrier();
    }
    barrier();
    return found_id;
}

// What top_k and top_p keep.
Cut select_cut(uint row, bool by_mass) {
    uint search = by_mass ? kSearchTopP : kSearchTopK;
    SelectStep s = last_step(row, search, by_mass);
    if (s.found == kNothing) return Cut(-kInfinity, 0xffffffffu);
    if (s.found == kEnd) return Cut(logit_of(s.digits), 0xffffffffu);
    uint bin = s.digits & 255u;
    uint kept = kept_of_equals(s, by_mass, bin_count[bin], bin_mass(bin));
    return Cut(logit_of(s.digits), kept < bin_count[bin] ? id_of_equal(row, s.digits, kept) : 0xffffffffu);
}

void main() {
    uint row = gl_WorkGroupID.x;
    uint at = args.first_row + row * args.row_step;
    if (rows[at].live == 0u) return;
    Truncation t = truncation_of(rows[at].slot);
    Cut cut = Cut(-kInfinity, 0xffffffffu);
    if (t.by_k || t.by_p) cut = select_cut(row, t.by_p);
    if (t.by_min_p) {
        uint lane = gl_LocalInvocationIndex;
        if (lane == 0u) largest = 0u;
        barrier();
        uint mine = 0u;
        for (uint c = lane; c < args.n_chunks; c += THREADS) mine = max(mine, scratch[scratch_of(row) + c]);
        atomicMax(largest, mine);
        barrier();
        float best = logit_of(largest);
        precise float least = t.min_p < 1.0 ? min(best + log(t.min_p), best) : best;
        if (largest != 0u && least > cut.logit) cut = Cut(least, 0xffffffffu);
    }
    if (gl_LocalInvocationIndex == 0u) {
        cuts[row].logit = cut.logit;
        cuts[row].last_id = cut.last_id;
    }
}
