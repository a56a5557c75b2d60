// What is known of a query after some of its keys (its weighed values, their largest score, their weights' sum), and how such parts
// become one: those of a workgroup's teams, and those of a row's splits. Include after reduce.glsl and cached_pairs.glsl, after
// the buffers of attention.comp.

const uint PART = HEAD_DIM + 2u;
shared float team_parts[TEAMS > 1u ? QUERIES * TEAMS * PART : 1u]; // (query, team, PART)
shared uint n_done_here;

uint partials_of(uint r, uint head) { return (r * args.n_heads + head) * args.max_splits * PART; }

void write_y(uint r, uint head, uint pair, vec2 weighed, float total) {
    precise vec2 v = weighed / total;
    uint at = (r * args.n_heads + head) * HEAD_DIM + 2u * pair;
    y[at] = v.x;
    y[at + 1u] = v.y;
}

uint n_splits_of(uint r) { return rows[r].position / args.split + 1u; }

// True if the row has one split: its result can go straight to y.
bool is_whole(uint r) { return COMBINES != 0u && n_splits_of(r) == 1u; }

// A lane's pair of this workgroup's split: to y where that is whole, else a partial, with the first lane's largest and total.
void write_pair(uint r, uint head, bool whole, uint pair, vec2 weighed, float largest, float total) {
    uint base = partials_of(r, head) + gl_WorkGroupID.x * PART;
    if (whole) {
        write_y(r, head, pair, weighed, total);
    } else {
        partials[base + 2u * pair] = weighed.x;
        partials[base + 2u * pair + 1u] = weighed.y;
        if (pair == 0u) partials[base + HEAD_DIM] = largest;
        if (pair == 0u) partials[base + HEAD_DIM + 1u] = total;
    }
}

// Declares largest, total and sums, a lane's pairs: of n parts in their order, from `base` on.
#define JOIN(parts, base, n)                                                                                           \
    float largest = kLowest;                                                                                           \
    for (uint s = 0u; s < (n); ++s) largest = max(largest, parts[(base) + s * PART + HEAD_DIM]);                       \
    precise float total = 0.0;                                                                                         \
    precise vec2 sums[PAIRS];                                                                                          \
    [[unroll]] for (uint i = 0u; i < PAIRS; ++i) sums[i] = vec2(0.0);                                                  \
    for (uint s = 0u; s < (n); ++s) {                                                                                  \
        uint at = (base) + s * PART;                                                                                   \
        float weight = exp(parts[at + HEAD_DIM] - largest);                                                            \
        total = fma(parts[at + HEAD_DIM + 1u], weight, total);                                                         \
        [[unroll]] for (uint i = 0u; i < PAIRS; ++i) {                                                                 \
            uint pair = at + 2u * min(lane * PAIRS + i, HEAD_PAIRS - 1u);                                              \
            precise vec2 sum = fma(vec2(parts[pair], parts[pair + 1u]), vec2(weight), sums[i]);                        \
            sums[i] = sum;                                                                                             \
        }                                                                                                              \
    }

// How many workgroups are done with a row's KV head, this one among them.
uint count_done(uint counter) {
    uint n_done = 0u;
    if (gl_LocalInvocationIndex == 0u) n_done = atomicAdd(done[counter], 1u) + 1u;
#ifdef SUBGROUP
    if (TEAMS == 1u) return lane_broadcast(n_done, 0u);
#endif
    barrier();
    if (gl_LocalInvocationIndex == 0u) n_done_here = n_done;
    barrier();
    return n_done_here;
}

// Of the splits of row r; by all invocations, in every workgroup that has written one of them.
void combine_if_last(uint r) {
    uint n_splits = n_splits_of(r);
    uint kv_head = gl_WorkGroupID.y;
    uint lane = lane_index();
    bool owns = lane * PAIRS < HEAD_PAIRS;
    uint counter = r * args.n_kv_heads + kv_head;
    if (count_done(counter) != n_splits) return;
    memoryBarrierBuffer();
    if (gl_LocalInvocationIndex == 0u) done[counter] = 0u;
    for (uint g = team_index(); g < GROUP; g += TEAMS) {
        JOIN(partials, partials_of(r, kv_head * GROUP + g), n_splits)
        [[unroll]] for (uint i = 0u; i < PAIRS; ++i)
            if (owns) write_y(r, kv_head * GROUP + g, lane * PAIRS + i, sums[i], total);
    }
}
