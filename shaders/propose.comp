// Looks for the next round's drafts in a slot's own text; shared/propose_args.h says which. One workgroup per batch entry that
// accept_commit asks it for.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/propose_args.h"

// 32 to 128: at least one for each token of `tail`'s first half, and with fewer the longest search takes more loop iterations than
// llvmpipe lets an invocation make (65,535 in all).
layout(local_size_x_id = 0) in;
const uint kThreads = gl_WorkGroupSize.x;

layout(push_constant) uniform Push { ProposeArgs args; };
layout(std430, binding = kProposeBatch) readonly buffer Batch { uint batch[]; };
layout(std430, binding = kProposeState) buffer State { SlotState state[]; };
layout(std430, binding = kProposeHistory) readonly buffer History { uint history[]; };
layout(std430, binding = kProposeRecords) writeonly buffer Records { RoundRecord records[]; };
layout(std430, binding = kProposeCounts) readonly buffer Counts { uint counts[]; };
layout(std430, binding = kProposeIndex) buffer Index { uint index[]; };

#define INDEX_WORDS args.index_words
#define HISTORY_STRIDE args.history_stride
#include "include/text_index.glsl"

// Positions are offsets into the window.
uint window;     // where it begins in `history`
uint window_len; // tokens

shared uint tail[2u * kMaxPath]; // the text's last tokens, then what was predicted
shared uint largest;

// Of the continuations of one context: count << 16 | offset of one of them, by open addressing. Never full.
shared uint table[3u * kNgramWindow / 2u];
uint table_size; // used

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

// Which of an invocation's offsets of the n-gram window are as long a match as any: bit i % 32 of word i / 32 stands for offset_of(i).
const uint kWords = kNgramWindow / 32u / 32u;
uint matches[kWords];

uint offset_of(uint i) { return kThreads * i + gl_LocalInvocationIndex + 1u; }

void forget_matches() {
    for (uint word = 0u; word < kWords; ++word) matches[word] = 0u;
}

// The longest match's length << 16 | offset just after it, the latest among equals; 0: not one token matches.
uint longest_match(uint tail_len, uint limit) {
    uint found = 0u;
    forget_matches();
    for (uint i = 0u; offset_of(i) < window_len; ++i) {
        uint length = match_length(offset_of(i), tail_len, limit);
        if (length == 0u || length < found >> 16) continue;
        if (length > found >> 16) forget_matches();
        if (i < 32u * kWords) matches[i / 32u] |= 1u << i % 32u;
        found = max(found, length << 16 | offset_of(i));
    }
    uint longest = largest_of_all(found);
    if (found >> 16 < longest >> 16) forget_matches();
    return longest;
}

uint table_entry(uint offset) {
    uint token = history[window + offset];
    uint at = (token * 2654435761u >> 16) * table_size >> 16; // Fibonacci hashing: the product's high bits
    for (;;) {
        uint there = atomicCompSwap(table[at], 0u, offset);
        if (there == 0u || history[window + (there & 0xffffu)] == token) return at;
        at = at + 1u == table_size ? 0u : at + 1u;
    }
}

// The token that most often follows a match.
uint most_frequent() {
    for (uint i = gl_LocalInvocationIndex; i < table_size; i += kThreads) table[i] = 0u;
    barrier();
    for (uint word = 0u; word < kWords; ++word)
        for (uint bits = matches[word]; bits != 0u; bits &= bits - 1u)
            atomicAdd(table[table_entry(offset_of(32u * word + uint(findLSB(bits))))], 1u << 16);
    barrier();
    uint found = 0u;
    for (uint word = 0u; word < kWords; ++word)
        for (uint bits = matches[word]; bits != 0u; bits &= bits - 1u) {
            uint offset = offset_of(32u * word + uint(findLSB(bits)));
            found = max(found, table[table_entry(offset)] >> 16 << 16 | offset);
        }
    return history[window + (largest_of_all(found) & 0xffffu)];
}

// The n-grams of a text's window become known, all of them as if just seen, and what was known of another text is forgotten.
void read_window(uint slot, uint text_len, uint n, uint now) {
    for (uint end = text_len - window_len + n + gl_LocalInvocationIndex; end <= text_len; end += kThreads)
        atomicExchange(index[time_of(slot, end, n)], now);
}

void propose(uint slot, uint entry, uint i, uint token) {
    state[slot].proposed[i] = token;
    records[entry].proposed[i] = token; // a slot that is given up and taken again is told of them
}

void main() {
    uint entry = counts[kSearchEntries + gl_WorkGroupID.x];
    uint slot = batch[entry];
    if (slot == kNoSlot || state[slot].live == 0u || state[slot].search == kDrafterNone) return;
    bool by_ngram = state[slot].search == kDrafterNgram;
    uint text_len = state[slot].target_len + 1u;
    uint max_drafts = min(state[slot].search_len, kMaxDraftLen);
    uint longest = search_limit(state[slot].search, state[slot].ngram_max);
    uint limit = min(longest, text_len);
    window_len = min(text_len, search_window(state[slot].search));
    window = slot * args.history_stride + text_len - window_len;
    table_size = 3u * min(window_len, kNgramWindow) / 2u; // of at most window_len - 1 tokens

    uint lane = gl_LocalInvocationIndex;
    bool is_new = state[slot].indexed_len != text_len;
    uint now = index[clock_of(slot)] + (is_new ? search_window(state[slot].search) : 0u);
    if (is_new) read_window(slot, text_len, min(kFirstMatch, longest), now);
    if (lane < limit) tail[lane] = history[window + window_len - limit + lane];
    barrier();
    uint first_match = min(kFirstMatch, limit); // a shorter text matches fewer tokens than it has
    uint n_proposed = 0u;
    uint match_len = 0u;
    if (by_ngram) {
        for (; n_proposed < max_drafts; ++n_proposed) {
            uint tail_len = limit + n_proposed;
            uint length = longest_match(tail_len, limit) >> 16;
            if (length < (n_proposed == 0u ? first_match : 1u)) break;
            if (n_proposed == 0u) match_len = length;
            uint token = most_frequent();
            if (lane == 0u) tail[tail_len] = token;
            barrier();
        }
        if (lane < n_proposed) propose(slot, entry, lane, tail[limit + lane]);
    } else {
        uint found = longest_match(limit, limit);
        if (found >> 16 >= first_match && max_drafts > 0u) {
            match_len = found >> 16;
            n_proposed = max_drafts;
            uint offset = found & 0xffffu;
            if (lane < n_proposed) propose(slot, entry, lane, history[window + offset + lane % (window_len - offset)]);
        }
    }
    if (lane == 0u) {
        index[clock_of(slot)] = now;
        state[slot].indexed_len = text_len;
        state[slot].n_proposed = n_proposed;
        state[slot].match_len = match_len;
        records[entry].match_len = match_len;
        records[entry].n_proposed = n_proposed;
    }
}
