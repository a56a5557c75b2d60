// One workgroup per (chunk, row): finds the digit of the level before from its histogram, then counts the chunk's tokens that
// share the digits so far by this level's digit: in shared memory, and from there into the row's histogram. The first chunk's
// zeroes the next level's.
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
#include "include/select.glsl"

shared uint largest; // key of the row

// The mass that top_p shares out: of what top_k leaves, or of all.
uvec2 mass_left(uint row, bool by_k) {
    if (by_k) {
        SelectStep last = last_step(row, kSearchTopK, true);
        if (last.found == kEnd) return last.mass;
        if (last.found == kDigits) {
            uint bin = last.digits & 255u;
            uint each = div64(bin_mass(bin), max(bin_count[bin], 1u));
            return add64(last.mass, mul32(kept_of_equals(last, false, 0u, uvec2(0u)), each));
        }
    }
    load_histogram(histogram_of(row, 0u, 0u), true);
    return total_mass();
}

// What is known when a level begins. For all invocations.
SelectStep enter_level(uint row, Truncation t) {
    bool by_mass = args.search == kSearchTopP;
    SelectStep s = SelectStep(kDigits, 0u, uvec2(0u), uvec2(t.top_k, 0u), uvec2(0u));
    if (args.level == 0u) return s;
    if (args.level > 1u) s = load_step(step_of(row, args.search, args.level - 1u));
    else if (by_mass) {
        s.target = share64(mass_left(row, t.by_k), t.top_p);
        if (s.target == uvec2(0u)) s.target.x = 1u; // never nothing
    }
    if (s.found != kDigits) return s;
    load_histogram(histogram_of(row, args.search, args.level - 1u), t.by_p);
    return next_digit(s, by_mass, 32u - 8u * args.level);
}

void main() {
    uint row = gl_WorkGroupID.y;
    uint at = args.first_row + row * args.row_step;
    if (rows[at].live == 0u) return;
    Truncation t = truncation_of(rows[at].slot);
    bool wanted = args.level == 0u ? t.by_k || t.by_p : args.search == kSearchTopK ? t.by_k : t.by_p;
    if (!wanted) return;

    uint lane = gl_LocalInvocationIndex;
    uint shift = 24u - 8u * args.level;
    uint first = scratch_of(row);
    uint chunk_largest = scratch[first + gl_WorkGroupID.x];
    uint known_digits = 0u; // by the level before; the first two know none
    if (args.level > 1u) known_digits = scratch[step_of(row, args.search, args.level - 1u) + 1u];
    if (lane == 0u) largest = 0u;
    barrier();
    uint mine = 0u;
    for (uint c = lane; c < args.n_chunks; c += THREADS) mine = max(mine, scratch[first + c]);
    atomicMax(largest, mine);
    barrier();
    float row_largest = logit_of(largest);
    bool idle = chunk_largest == 0u || chunk_largest >> shift >> 16u < known_digits; // no token shares the digits
    if (idle && (gl_WorkGroupID.x != 0u || args.level == 0u)) return; // the first stores the step for all

    SelectStep s = enter_level(row, t);
    if (args.level > 0u && gl_WorkGroupID.x == 0u) {
        if (lane == 0u) store_step(step_of(row, args.search, args.level), s);
        bool goes_on = s.found == kDigits && args.level + 1u < kSelectLevels;
        if (goes_on) zero_histogram(histogram_of(row, args.search, args.level + 1u), t.by_p, lane, THREADS);
    }
    if (idle || s.found != kDigits || (args.level > 0u && chunk_largest >> (shift + 8u) < s.digits)) return;
    barrier();
    for (uint i = lane; i < kDigitBins; i += THREADS) bin_count[i] = bin_low[i] = bin_high[i] = 0u;
    barrier();
    bool counts = t.by_k || args.level > 0u; // so few that top_p alone can count them, too
    uint begin = gl_WorkGroupID.x * kVocabChunk;
    uint end = min(begin + kVocabChunk, args.vocab);
    uint base = (args.first_logits + row * args.logits_step) * args.vocab;
    for (uint quad = begin + 4u * lane; quad < end; quad += 4u * THREADS) {
        vec4 four = LOGIT_QUAD(logits, base, quad, end);
        uvec4 keys;
        bvec4 takes_part;
        for (uint i = 0u; i < 4u; ++i) {
            keys[i] = key_of(four[i]);
            takes_part[i] = all(bvec3(quad + i < end, keys[i] != 0u, keys[i] >> shift >> 8u == s.digits));
        }
        for (uint i = 0u; i < 4u; ++i) {
            if (!takes_part[i]) continue;
            uint bin = keys[i] >> shift & 255u;
            if (counts) atomicAdd(bin_count[bin], 1u);
            if (!t.by_p) continue;
            uint mass = mass_of(four[i], row_largest);
            if ((mass & 0xffffu) != 0u) atomicAdd(bin_low[bin], mass & 0xffffu);
            if (mass >> 16 != 0u) atomicAdd(bin_high[bin], mass >> 16);
        }
    }
    barrier();
    uint to = histogram_of(row, args.search, args.level);
    for (uint i = lane; i < kDigitBins; i += THREADS) {
        if (bin_count[i] != 0u) atomicAdd(scratch[to + i], bin_count[i]);
        if ((bin_low[i] | bin_high[i]) == 0u) continue;
        atomicAdd(scratch[to + kDigitBins + i], bin_low[i] & 0xffffu);
        atomicAdd(scratch[to + 2u * kDigitBins + i], bin_high[i] + (bin_low[i] >> 16));
    }
}
