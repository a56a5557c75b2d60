// One step of the radix select down a row's histograms, and what its shaders agree on. Before including: THREADS, args
// (TruncateArgs), and the buffers state and scratch.
#include "shared/truncate_args.h"
#include "include/fixed_sum.glsl"
#include "include/logit_quad.glsl"

const uint kOne = 1u << 28; // mass of the row's largest logit
const uint kGroups = 16u;   // bins are summed in groups first

shared uint bin_count[kDigitBins], bin_low[kDigitBins], bin_high[kDigitBins];
shared uint group_count[kGroups], group_low[kGroups], group_high[kGroups]; // mass as a 64-bit sum

const uint kLeastKey = 0x00800000u; // of logits that can be drawn

// Larger logits have larger keys, equal ones equal keys. 0: cannot be drawn (-inf, NaN).
uint key_of(float logit) {
    uint bits = floatBitsToUint(logit);
    if (bits == 0x80000000u) bits = 0u; // -0 equals 0
    bool drawable = (bits & 0x7fffffffu) < 0x7f800000u || bits == 0x7f800000u;
    uint key = (bits & 0x80000000u) != 0u ? ~bits : bits | 0x80000000u;
    return drawable ? key : 0u;
}
float logit_of(uint key) {
    return uintBitsToFloat((key & 0x80000000u) != 0u ? key & 0x7fffffffu : ~key);
}
uint mass_of(float logit, float largest) {
    if (logit == largest) return kOne;
    precise float distance = logit - largest;
    return min(uint(exp(distance) * float(kOne) + 0.5), kOne);
}

// What is found of the last token kept.
const uint kNothing = 0u; // the row has less than the target
const uint kDigits = 1u;  // of its key, so far
const uint kEnd = 2u;     // all that share its digits are kept: no further digit is sought

// The digits found so far and what lies before them in the order.
struct SelectStep {
    uint found;
    uint digits; // kEnd: the smallest key that has them
    uvec2 before; // tokens or mass
    uvec2 target; // the last token kept is the one with which `before` reaches it
    uvec2 mass;   // before, also when tokens are sought; kEnd: of all that are kept
};

// What a slot asks for; greedy slots ask for nothing.
struct Truncation {
    bool by_k, by_p, by_min_p;
    uint top_k;
    float top_p, min_p;
};
Truncation truncation_of(uint slot) {
    bool greedy = state[slot].temperature == 0.0;
    uint top_k = state[slot].top_k;
    float top_p = state[slot].top_p;
    float min_p = state[slot].min_p;
    return Truncation(!greedy && top_k != 0u && top_k < args.vocab, !greedy && top_p < 1.0, !greedy && min_p > 0.0, top_k, max(top_p, 0.0), min_p);
}

uint scratch_of(uint row) { return row * truncate_scratch_words(args.n_chunks); }
uint step_of(uint row, uint search, uint level) {
    return scratch_of(row) + args.n_chunks + (search * 3u + level - 1u) * kStepWords;
}
uint histogram_of(uint row, uint search, uint level) {
    return scratch_of(row) + args.n_chunks + kSteps * kStepWords + (level == 0u ? 0u : search * 3u + level) * kHistogramWords;
}

void store_step(uint at, SelectStep s) {
    scratch[at] = s.found;
    scratch[at + 1u] = s.digits;
    scratch[at + 2u] = s.before.x;
    scratch[at + 3u] = s.before.y;
    scratch[at + 4u] = s.target.x;
    scratch[at + 5u] = s.target.y;
    scratch[at + 6u] = s.mass.x;
    scratch[at + 7u] = s.mass.y;
}
SelectStep load_step(uint at) {
    return SelectStep(scratch[at], scratch[at + 1u], uvec2(scratch[at + 2u], scratch[at + 3u]), uvec2(scratch[at + 4u], scratch[at + 5u]),
                      uvec2(scratch[at + 6u], scratch[at + 7u]));
}

uvec2 bin_mass(uint bin) { return add64(uvec2(bin_high[bin] << 16, bin_high[bin] >> 16), uvec2(bin_low[bin], 0u)); }
uvec2 group_mass(uint group) { return uvec2(group_low[group], group_high[group]); }

// By `step` invocations, of which this is number `first`; without masses where none are kept.
void zero_histogram(uint at, bool masses, uint first, uint step) {
    for (uint i = first; i < (masses ? kHistogramWords : kDigitBins); i += step) scratch[at + i] = 0u;
}

// A histogram into shared memory, and the sums of its groups. For all invocations; without masses where none are kept.
void load_histogram(uint at, bool masses) {
    barrier(); // readers of the one before
    for (uint i = gl_LocalInvocationIndex; i < kDigitBins; i += THREADS) {
        uint count = scratch[at + i], low = 0u, high = 0u;
        if (masses) {
            low = scratch[at + kDigitBins + i];
            high = scratch[at + 2u * kDigitBins + i];
        }
        bin_count[i] = count; // only now: a load behind a store may wait for those before
        bin_low[i] = low;
        bin_high[i] = high;
    }
    barrier();
    for (uint group = gl_LocalInvocationIndex; group < kGroups; group += THREADS) {
        uint count = 0u;
        uvec2 mass = uvec2(0u);
        for (uint i = 0u; i < kDigitBins / kGroups; ++i) {
            count += bin_count[group * (kDigitBins / kGroups) + i];
            if (masses) mass = add64(mass, bin_mass(group * (kDigitBins / kGroups) + i));
        }
        group_count[group] = count;
        group_low[group] = mass.x;
        group_high[group] = mass.y;
    }
    barrier();
}

uvec2 total_mass() {
    uvec2 total = uvec2(0u);
    for (uint group = 0u; group < kGroups; ++group) total = add64(total, group_mass(group));
    return total;
}

// Finds the next digit in the loaded histogram, from the largest bin down; `shift` bits lie below it. Every invocation finds the same.
SelectStep next_digit(SelectStep s, bool by_mass, uint shift) {
    uint group = kGroups, bin = 0u;
    while (group > 0u) {
        uvec2 reached = add64(s.before, by_mass ? group_mass(group - 1u) : uvec2(group_count[group - 1u], 0u));
        if (!less64(reached, s.target)) break;
        s.before = reached;
        s.mass = add64(s.mass, group_mass(--group));
    }
    if (group == 0u) {
        s.found = kNothing;
        return s;
    }
    for (bin = group * (kDigitBins / kGroups); bin > 0u;) {
        uvec2 reached = add64(s.before, by_mass ? bin_mass(bin - 1u) : uvec2(bin_count[bin - 1u], 0u));
        if (!less64(reached, s.target)) break;
        s.before = reached;
        s.mass = add64(s.mass, bin_mass(--bin));
    }
    s.digits = s.digits << 8 | (bin - 1u) & 255u;
    uint count = bin_count[bin - 1u];
    if (by_mass ? count != 1u : s.before.x + count != s.target.x) return s;
    s.found = kEnd;
    s.digits = max(s.digits << shift, kLeastKey);
    s.mass = add64(s.mass, bin_mass(bin - 1u));
    return s;
}

// Where a search ends. For all invocations; where it is kDigits, the last histogram is loaded.
SelectStep last_step(uint row, uint search, bool masses) {
    SelectStep s = load_step(step_of(row, search, 3u));
    if (s.found != kDigits) return s;
    load_histogram(histogram_of(row, search, 3u), masses);
    return next_digit(s, search == kSearchTopP, 0u);
}

// All digits are found: how many of the equal logits at the end are kept, from the lowest id on. `count` there are.
uint kept_of_equals(SelectStep s, bool by_mass, uint count, uvec2 mass) {
    uvec2 missing = sub64(s.target, s.before);
    if (!by_mass) return missing.x;
    uint each = div64(mass, max(count, 1u));
    return div64(add64(missing, uvec2(each - 1u, 0u)), max(each, 1u));
}
