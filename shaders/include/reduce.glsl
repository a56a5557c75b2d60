// Fixed reduction trees over LANES invocations: the same additions in the same order whether they travel by shuffles
// (subgroup variant; LANES is the pinned subgroup size) or through shared memory. No subgroupAdd: its order is undefined.
// A workgroup holds one or more teams of LANES invocations. Define LANES and TEAMS before including, and AT_ONCE if SUM_EACH is
// used: how many values go through shared memory with one barrier.

#ifdef SUBGROUP
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require

uint lane_index() { return gl_SubgroupInvocationID; }
uint team_index() { return gl_SubgroupID; }
float lane_exchange(float v, uint distance) { return subgroupShuffleXor(v, distance); }
uint lane_exchange(uint v, uint distance) { return subgroupShuffleXor(v, distance); }
float lane_broadcast(float v, uint lane) { return subgroupShuffle(v, lane); }
void team_barrier() { subgroupBarrier(); } // of memory too
uint lane_broadcast(uint v, uint lane) { return subgroupShuffle(v, lane); }
#define SUM_EACH(n, sums, KEPT, GIVEN, distance)                                                                       \
    [[unroll]] for (int i = 0; i < (n); ++i) {                                                                         \
        precise float sum = KEPT(i) + lane_exchange(GIVEN(i), distance);                                               \
        sums[i] = sum;                                                                                                 \
    }
#else
void team_barrier() { barrier(); } // by the whole workgroup
// Exchanges take turns with two halves, so that one barrier each is enough: who writes a half again has met, at the barrier
// between, everyone who read it.
#ifndef AT_ONCE
#define AT_ONCE 1
#endif
const uint kScratch = LANES * TEAMS;
shared float scratch_f[2u * AT_ONCE * kScratch]; // (half, value, invocation)
shared uint scratch_u[2u * kScratch];
uint scratch_half = 0u; // 0 or 1

uint lane_index() { return gl_LocalInvocationIndex % LANES; }
uint team_index() { return gl_LocalInvocationIndex / LANES; }
#define FROM_INVOCATION(scratch, half_words, v, invocation)                                                            \
    scratch_half = 1u - scratch_half;                                                                                  \
    scratch[scratch_half * (half_words) + gl_LocalInvocationIndex] = v;                                                \
    barrier();                                                                                                         \
    return scratch[scratch_half * (half_words) + (invocation)];
float lane_exchange(float v, uint distance) { FROM_INVOCATION(scratch_f, AT_ONCE * kScratch, v, gl_LocalInvocationIndex ^ distance) }
uint lane_exchange(uint v, uint distance) { FROM_INVOCATION(scratch_u, kScratch, v, gl_LocalInvocationIndex ^ distance) }
float lane_broadcast(float v, uint lane) { FROM_INVOCATION(scratch_f, AT_ONCE * kScratch, v, team_index() * LANES + lane) }
uint lane_broadcast(uint v, uint lane) { FROM_INVOCATION(scratch_u, kScratch, v, team_index() * LANES + lane) }
#define SUM_EACH(n, sums, KEPT, GIVEN, distance)                                                                       \
    [[unroll]] for (int first = 0; first < (n); first += AT_ONCE) {                                                    \
        scratch_half = 1u - scratch_half;                                                                              \
        uint own = scratch_half * AT_ONCE * kScratch + gl_LocalInvocationIndex;                                        \
        uint others = scratch_half * AT_ONCE * kScratch + (gl_LocalInvocationIndex ^ (distance));                      \
        [[unroll]] for (int at = 0; at < AT_ONCE; ++at)                                                                \
            if (first + at < (n)) scratch_f[own + at * kScratch] = GIVEN(first + at);                                  \
        barrier();                                                                                                     \
        [[unroll]] for (int at = 0; at < AT_ONCE; ++at) {                                                              \
            if (first + at >= (n)) continue;                                                                           \
            precise float sum = KEPT(first + at) + scratch_f[others + at * kScratch];                                  \
            sums[first + at] = sum;                                                                                    \
        }                                                                                                              \
    }
#endif
// SUM_EACH: sums[i] = KEPT(i) + the GIVEN(i) of the lane at `distance`, for i < n. No sums[i] is part of another's KEPT or GIVEN.

// The levels of a tree over LANES (8 to 64) lanes, written out: llvmpipe keeps loops as loops.
#define LANE_TREE(LEVEL)                                                                                               \
    if (LANES > 32u) LEVEL(32u)                                                                                        \
    if (LANES > 16u) LEVEL(16u)                                                                                        \
    if (LANES > 8u) LEVEL(8u)                                                                                          \
    LEVEL(4u)                                                                                                          \
    LEVEL(2u)                                                                                                          \
    LEVEL(1u)

// All lanes receive the result. Must be reached by every invocation of the workgroup.
float lane_sum(float v) {
#define SUM_LEVEL(distance)                                                                                            \
    {                                                                                                                  \
        precise float sum = v + lane_exchange(v, distance);                                                            \
        v = sum;                                                                                                       \
    }
    LANE_TREE(SUM_LEVEL)
    return v;
}
float lane_max(float v) {
#define MAX_LEVEL(distance) v = max(v, lane_exchange(v, distance));
    LANE_TREE(MAX_LEVEL)
    return v;
}
