// One workgroup per (chunk, row): the chunk's largest key, and zeros in the histograms of the first two levels.
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

shared uint largest;

void main() {
    uint row = gl_WorkGroupID.y;
    uint at = args.first_row + row * args.row_step;
    if (rows[at].live == 0u) return;
    Truncation t = truncation_of(rows[at].slot);
    if (!t.by_k && !t.by_p && !t.by_min_p) return;

    uint lane = gl_LocalInvocationIndex;
    uint first = gl_WorkGroupID.x * THREADS + lane, step = args.n_chunks * THREADS;
    if (t.by_k || t.by_p) zero_histogram(histogram_of(row, 0u, 0u), t.by_p, first, step);
    if (t.by_k) zero_histogram(histogram_of(row, kSearchTopK, 1u), t.by_p, first, step);
    if (t.by_p) zero_histogram(histogram_of(row, kSearchTopP, 1u), t.by_p, first, step);

    uint begin = gl_WorkGroupID.x * kVocabChunk;
    uint end = min(begin + kVocabChunk, args.vocab);
    uint base = (args.first_logits + row * args.logits_step) * args.vocab;
    uint mine = 0u;
    for (uint quad = begin + 4u * lane; quad < end; quad += 4u * THREADS) {
        vec4 four = LOGIT_QUAD(logits, base, quad, end);
        for (uint i = 0u; i < 4u; ++i) mine = max(mine, key_of(four[i]));
    }
    if (lane == 0u) largest = 0u;
    barrier();
    atomicMax(largest, mine);
    barrier();
    if (lane == 0u) scratch[scratch_of(row) + gl_WorkGroupID.x] = largest;
}
