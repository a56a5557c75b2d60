// One invocation per batch entry: ends the race, applies stops and limits, moves the slot's state, writes the record.
// With SEARCHES it also keeps the index of the slot's text, and asks for the searches that may find something.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "shared/accept_args.h"
#include "shared/round_rows.h"

layout(local_size_x_id = 0) in;

layout(push_constant) uniform Push { AcceptCommitArgs args; };
layout(std430, binding = kCommitPartials) readonly buffer Partials { RacePartial partials[]; };
layout(std430, binding = kCommitPlans) readonly buffer Plans { AcceptPlan plans[]; };
layout(std430, binding = kCommitRoundSlots) readonly buffer RoundSlots { RoundSlot round_slots[]; };
layout(std430, binding = kCommitTargetRows) readonly buffer TargetRows { Row target_rows[]; };
layout(std430, binding = kCommitState) buffer State { SlotState state[]; };
layout(std430, binding = kCommitHistory) buffer History { uint history[]; };
layout(std430, binding = kCommitRecords) writeonly buffer Records { RoundRecord records[]; };

#ifdef SEARCHES
layout(std430, binding = kCommitCounts) buffer Counts { uint counts[]; };
layout(std430, binding = kCommitIndex) buffer Index { uint index[]; };

#define INDEX_WORDS args.index_words
#define HISTORY_STRIDE args.history_stride
#include "include/text_index.glsl"

// Adds a text's tokens from indexed_len on to the index. Returns false where no search can find something: where what the text ends
// in is not in its window before. Equal hashes, and times as of a text just read, make it true for nothing now and then.
bool may_be_found(uint slot, uint indexed_len, uint text_len) {
    uint n = min(kFirstMatch, search_limit(state[slot].search, state[slot].ngram_max));
    uint now = index[clock_of(slot)];
    bool found = false;
    for (uint end = indexed_len + 1u; end <= text_len; ++end) {
        ++now;
        if (end < n) continue;
        uint at = time_of(slot, end, n);
        found = now - index[at] < search_window(state[slot].search);
        index[at] = now;
    }
    index[clock_of(slot)] = now;
    return found;
}

void ask_for_search(uint b, uint slot, uint indexed_len, uint text_len) {
    if (state[slot].search == kDrafterNone) return;
    state[slot].match_len = 0u;
    if (state[slot].indexed_len == indexed_len) {
        bool found = may_be_found(slot, indexed_len, text_len);
        state[slot].indexed_len = text_len;
        if (!found) return;
    }
    counts[kSearchEntries + atomicAdd(counts[kCountsSearch], 1u)] = b;
}
#endif

// The race's winner: over the residual when there is one and it has weight, else over the target.
uint race_winner(uint b) {
    float residual_key = 0.0, target_key = 0.0;
    uint residual_id = 0u, target_id = 0u;
    for (uint first = 0u; first < args.n_chunks; first += 8u) { // ascending: an equal key keeps the lowest id
        RacePartial chunks[8]; // on their way together; those after the last are the last once more, which wins nothing
        [[unroll]] for (uint i = 0u; i < 8u; ++i) chunks[i] = partials[b * args.n_chunks + min(first + i, args.n_chunks - 1u)];
        [[unroll]] for (uint i = 0u; i < 8u; ++i) {
            if (chunks[i].residual_key > residual_key) {
                residual_key = chunks[i].residual_key;
                residual_id = chunks[i].residual_id;
            }
            if (chunks[i].target_key > target_key) {
                target_key = chunks[i].target_key;
                target_id = chunks[i].target_id;
            }
        }
    }
    return plans[b].use_residual != 0u && residual_key > 0.0 ? residual_id : target_id;
}

bool is_stop(uint slot, uint n_stop, uint token) {
    bool found = false;
    for (uint first = 0u; first < n_stop; first += 4u) {
        uvec4 ids; // on their way together; kMaxStopIds is a multiple of 4
        for (uint i = 0u; i < 4u; ++i) ids[i] = state[slot].stop_ids[first + i];
        for (uint i = 0u; i < 4u; ++i) found = any(bvec2(found, all(bvec2(first + i < n_stop, ids[i] == token))));
    }
    return found;
}

void main() {
    uint b = gl_GlobalInvocationID.x;
    if (b >= args.batch) return;
    uint slot = round_slots[b].slot;
    records[b].slot = slot;
    records[b].live_before = round_slots[b].live;
    records[b].n_tokens = 0u;
    if (round_slots[b].live == 0u) return;

    uint k = round_slots[b].draft_len;
    uint start = round_slots[b].start;
    uint accepted = plans[b].accepted_len;
    uint next_token = plans[b].is_chosen != 0u ? plans[b].chosen_token : race_winner(b);
    uint n_generated = state[slot].n_generated;
    uint max_generated = state[slot].max_generated, max_context = state[slot].max_context;
    uint n_stop = min(state[slot].n_stop, kMaxStopIds);
    uint n_proposed = state[slot].n_proposed, proposed = state[slot].proposed[0];
    uint stop = kStopNone;
    uint token = 0u;
    uint emitted = 0u;
    uint foretold = kForetoldNothing;
    while (emitted <= accepted && stop == kStopNone) {
        token = emitted < accepted ? target_rows[row_of(args.draft_len, b, emitted + 1u)].token : next_token;
        records[b].tokens[emitted] = token;
        if (emitted == 0u && n_proposed > 0u) foretold = proposed == token ? kForetoldRight : kForetoldWrong;
        ++emitted;
        ++n_generated;
        if (start + emitted < args.history_stride) history[slot * args.history_stride + start + emitted] = token;
        if (is_stop(slot, n_stop, token)) stop = kStopEos;
        else if (n_generated >= max_generated) stop = kStopLength;
        else if (start + emitted + 1u >= max_context) stop = kStopContext;
    }
    // A draft model was fed the last token and drafts 0 … k-2: with all k accepted its cache lacks one row.
    uint draft_cache_len = k > 0u && fills_draft_cache(state[slot].drafter) ? start + min(k, emitted) : state[slot].draft_cache_len;

    state[slot].live = stop == kStopNone ? 1u : 0u;
    state[slot].last_token = token;
    state[slot].target_len = start + emitted;
    state[slot].draft_cache_len = draft_cache_len;
    state[slot].n_generated = n_generated;
    state[slot].n_proposed = 0u; // they were for this round
    records[b].start = start;
    records[b].draft_len = k;
    records[b].accepted_len = accepted;
    records[b].n_tokens = emitted;
    records[b].stop_reason = stop;
    records[b].draft_cache_len = draft_cache_len;
    records[b].drafter = k > 0u ? state[slot].drafter : kDrafterNone;
    records[b].match_len = 0u; // propose knows
    records[b].n_proposed = 0u;
    records[b].foretold = foretold;
    records[b].overlap = plans[b].overlap;
    records[b].not_finite = plans[b].not_finite;
#ifdef SEARCHES
    if (stop == kStopNone) ask_for_search(b, slot, start + 1u, start + emitted + 1u);
#endif
}
