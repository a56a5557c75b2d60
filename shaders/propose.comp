// Looks for the next round's drafts in a slot's own text; shared/propose_args.h says which. One workgroup per batch entry.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/propose_args.h"

const uint kThreads = 128u;
layout(local_size_x = 128) in;

layout(push_constant) uniform Push { ProposeArgs args; };
layout(std430, binding = kProposeBatch) readonly buffer Batch { uint batch[]; };
layout(std430, binding = kProposeState) buffer State { SlotState state[]; };
layout(std430, binding = kProposeHistory) readonly buffer History { uint history[]; };
layout(std430, binding = kProposeRecords) writeonly buffer Records { RoundRecord records[]; };

// Positions are offsets into the window.
uint window;     // where it begins in `history`
uint window_len; // tokens

shared uint tail[2u * kMaxPath]; // the text's last tokens, then what was predicted
shared uint largest;

// Of the continuations of one context: count << 16 | offset of one of them, by open addressing. Never full.
const uint kTableSize = 3u * kNgramWindow / 2u;
shared uint table[kTableSize];

// Must be reached by the whole workgroup, as everything below that calls it.
uint largest_of_all(uint value) {
    if (gl_LocalInvocationIndex == 0u) largest = 0u;
    barrier();
    if (value > 0u) atomicMax(largest, value);
    barrier();
    uint result = largest;
    barrier();
    return result;
}

// How many tokens before `offset` are those at the end of `tail`, at most `limit`.
uint match_length(uint offset, uint tail_len, uint limit) {
    limit = min(limit, offset);
    uint length = 0u;
    while (length < limit && history[window + offset - 1u - length] == tail[tail_len - 1u - length]) ++length;
    return length;
}

// The longest match's length << 16 | offset behind it, the latest among equals; 0: not one token matches. `mine`: which of
// this invocation's first 32 offsets are as long a match; bit i stands for kThreads · i + invocation + 1.
uint longest_match(uint tail_len, uint limit, out uint mine) {
    uint found = 0u;
    mine = 0u;
    uint bit = 1u;
    for (uint offset = 1u + gl_LocalInvocationIndex; offset < window_len; offset += kThreads) {
        uint length = match_length(offset, tail_len, limit);
        mine = length > found >> 16 ? bit : length == found >> 16 ? mine | bit : mine;
        if (length > 0u) found = max(found, length << 16 | offset);
        bit <<= 1u;
    }
    uint longest = largest_of_all(found);
    if (found >> 16 < longest >> 16) mine = 0u;
    return longest;
}

uint lowest_offset(uint bits) {
    return kThreads * uint(findLSB(bits)) + gl_LocalInvocationIndex + 1u;
}

uint table_entry(uint offset) {
    uint token = history[window + offset];
    uint at = (token * 2654435761u >> 16) * kTableSize >> 16; // Fibonacci hashing: the product's high bits
    for (;;) {
        uint there = atomicCompSwap(table[at], 0u, offset);
        if (there == 0u || history[window + (there & 0xffffu)] == token) return at;
        at = at + 1u == kTableSize ? 0u : at + 1u;
    }
}

// The token that is most often behind a match.
uint most_frequent(uint mine) {
    for (uint i = gl_LocalInvocationIndex; i < kTableSize; i += kThreads) table[i] = 0u;
    barrier();
    for (uint bits = mine; bits != 0u; bits &= bits - 1u) atomicAdd(table[table_entry(lowest_offset(bits))], 1u << 16);
    barrier();
    uint found = 0u;
    for (uint bits = mine; bits != 0u; bits &= bits - 1u) {
        uint offset = lowest_offset(bits);
        found = max(found, table[table_entry(offset)] >> 16 << 16 | offset);
    }
    return history[window + (largest_of_all(found) & 0xffffu)];
}

void main() {
    uint entry = gl_WorkGroupID.x;
    uint slot = batch[entry];
    if (slot == kNoSlot || state[slot].live == 0u || state[slot].search == kDrafterNone) return;
    bool by_ngram = state[slot].search == kDrafterNgram;
    uint text_len = state[slot].target_len + 1u;
    uint max_drafts = min(state[slot].search_len, kMaxDraftLen);
    uint limit = min(min(state[slot].ngram_max, kMaxPath) - (by_ngram ? 1u : 0u), text_len);
    window_len = min(text_len, by_ngram ? kNgramWindow : kLookupWindow);
    window = slot * args.history_stride + text_len - window_len;

    uint lane = gl_LocalInvocationIndex;
    if (lane < limit) tail[lane] = history[window + window_len - limit + lane];
    barrier();
    uint first_match = min(kFirstMatch, limit); // a shorter text matches fewer tokens than it has
    uint n_proposed = 0u;
    uint match_len = 0u;
    uint mine;
    if (by_ngram) {
        for (; n_proposed < max_drafts; ++n_proposed) {
            uint tail_len = limit + n_proposed;
            uint length = longest_match(tail_len, limit, mine) >> 16;
            if (length < (n_proposed == 0u ? first_match : 1u)) break;
            if (n_proposed == 0u) match_len = length;
            uint token = most_frequent(mine);
            if (lane == 0u) tail[tail_len] = token;
            barrier();
        }
        if (lane < n_proposed) state[slot].proposed[lane] = tail[limit + lane];
    } else {
        uint found = longest_match(limit, limit, mine);
        if (found >> 16 >= first_match && max_drafts > 0u) {
            match_len = found >> 16;
            n_proposed = max_drafts;
            uint offset = found & 0xffffu;
            if (lane < n_proposed) state[slot].proposed[lane] = history[window + offset + lane % (window_len - offset)];
        }
    }
    if (lane == 0u) {
        state[slot].n_proposed = n_proposed;
        state[slot].match_len = match_len;
        records[entry].match_len = match_len;
    }
}
