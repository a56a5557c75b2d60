// One workgroup per (split, KV head, tile_rows neighbouring rows), of TEAMS teams with as many runs of the split's keys. A lane owns
// PAIRS pairs of dimensions of q, K and V, so that heads are read in one piece; keys go in tiles of 8, whose scores end up in 8 groups
// of lanes, and the softmax runs online between tiles. Splits, runs and tiles lie at absolute positions, so a row walks the same
// ones in any company.
// Rows that follow each other in one slot share what is read of K and V, QUERIES query heads at a time; where the rows of a workgroup
// do not, it takes them in turns.
// COMBINES: the workgroup that is done last with a row's KV head joins its splits, in their order, as combine.comp would.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "shared/attention_args.h"

layout(local_size_x_id = 7) in; // LANES · TEAMS
#ifdef UNROLLED
const uint LANES = 8; // else loops over what a lane holds would stay
const uint HEAD_DIM = UNROLLED_HEAD_DIM;
const uint QUERIES = UNROLLED_QUERIES;
const uint TEAMS = 1; // llvmpipe's lanes wait for no memory
#else
layout(constant_id = 0) const uint LANES = 8; // at least TILE
layout(constant_id = 1) const uint HEAD_DIM = 64;
layout(constant_id = 5) const uint QUERIES = 2;
layout(constant_id = 6) const uint TEAMS = 1;
#endif
layout(constant_id = 2) const uint GROUP = 2; // query heads per KV head
layout(constant_id = 3) const uint CACHE_TYPE = 0;
layout(constant_id = 4) const uint COMBINES = 0;
#define AT_ONCE 2
#include "include/reduce.glsl"
#include "include/wide.glsl"
#include "include/q8_scale.glsl"

layout(push_constant) uniform Push { AttentionArgs args; };
layout(std430, binding = kAttentionQkv) readonly buffer Qkv { vec2 qkv[]; };
layout(std430, binding = kAttentionRows) readonly buffer Rows { Row rows[]; };
layout(std430, binding = kAttentionPages) readonly buffer Pages { uint pages[]; };
layout(std430, binding = kAttentionK) readonly buffer K { WIDE_WORD k_cache[]; };
layout(std430, binding = kAttentionV) readonly buffer V { WIDE_WORD v_cache[]; };
layout(std430, binding = kAttentionPartials) coherent buffer Partials { float partials[]; };
layout(std430, binding = kAttentionY) writeonly buffer Y { float y[]; };
layout(std430, binding = kAttentionDone) coherent buffer Done { uint done[]; };

const uint TILE = 8u; // keys
const float kLowest = -3.402823466e38;
const uint SHARE = LANES / TILE; // lanes that hold the same key's
#include "include/cached_pairs.glsl"
#include "include/tile_keys.glsl"
#include "include/attention_parts.glsl"

// A lane's parts of 8 sums become one sum: of key lane / SHARE of the tile. While lanes hold several, each half of them keeps
// half, so that an exchange serves two sums; the additions are those of lane_sum.
float tile_sums(in float parts[TILE]) {
    uint lane = lane_index();
#define KEPT_PART(i) (upper ? parts[(i) + n_kept] : parts[i])
#define GIVEN_PART(i) (upper ? parts[i] : parts[(i) + n_kept])
#define TILE_LEVEL(level)                                                                                              \
    {                                                                                                                  \
        const int n_kept = int(TILE >> (level + 1u));                                                                  \
        bool upper = (lane & (LANES >> (level + 1u))) != 0u;                                                           \
        SUM_EACH(n_kept, parts, KEPT_PART, GIVEN_PART, LANES >> (level + 1u))                                          \
    }
    TILE_LEVEL(0u)
    TILE_LEVEL(1u)
    TILE_LEVEL(2u)
    precise float sum = parts[0];
    if (SHARE > 4u) sum = sum + lane_exchange(sum, 4u);
    if (SHARE > 2u) sum = sum + lane_exchange(sum, 2u);
    if (SHARE > 1u) sum = sum + lane_exchange(sum, 1u);
    return sum;
}

// Keys are where their positions say, and so are those of the rows before.
bool in_chain(uint r) { return rows[r].kv_index == rows[r].position; }

// The keys of a tile one by one, written out: spirv-opt unrolls no loop that holds another in a branch.
#define FOR_TILE(KEY) KEY(0u) KEY(1u) KEY(2u) KEY(3u) KEY(4u) KEY(5u) KEY(6u) KEY(7u)
#define LOAD_K(t)                                                                                                      \
    {                                                                                                                  \
        uint element = OF_KEY(own_k, kToldK, t);                                                                       \
        if (CACHE_TYPE == kCacheQ8) {                                                                                  \
            SCALE_OF_KEY(k_scale, kToldKScale, t, scale)                                                               \
            LOAD_CODES(k, element, scale, k, K_OF(t))                                                                  \
        } else {                                                                                                       \
            LOAD_PAIRS(k, element, k, K_OF(t))                                                                         \
        }                                                                                                              \
    }
#define LOAD_V(t)                                                                                                      \
    {                                                                                                                  \
        uint element = OF_KEY(own_v, kToldV, t);                                                                       \
        if (CACHE_TYPE == kCacheQ8) {                                                                                  \
            SCALE_OF_KEY(v_scale, kToldVScale, t, scale)                                                               \
            LOAD_CODES(v, element, scale, v, V_OF(t))                                                                  \
        } else {                                                                                                       \
            LOAD_PAIRS(v, element, v, V_OF(t))                                                                         \
        }                                                                                                              \
    }
// A GPU asks for the values of a tile with its keys, so that both are on their way at once, where a lane has registers for all of them.
#ifdef UNROLLED
const bool EARLY_K = true, EARLY_V = false;
#else
const bool EARLY_K = PAIRS <= 2u, EARLY_V = EARLY_K;
#endif
#define K_OF(t) (EARLY_K ? (t) * PAIRS : 0u)
#define V_OF(t) (EARLY_V ? (t) * PAIRS : 0u)
// A lane's part of the score of query h and key t.
#define SCORE(t, h, part)                                                                                              \
    {                                                                                                                  \
        precise float dot_kq = 0.0;                                                                                    \
        [[unroll]] for (uint i = 0u; i < PAIRS; ++i) {                                                                 \
            dot_kq = fma(q[(h) * PAIRS + i].x, k[K_OF(t) + i].x, dot_kq);                                              \
            dot_kq = fma(q[(h) * PAIRS + i].y, k[K_OF(t) + i].y, dot_kq);                                              \
        }                                                                                                              \
        part = owns ? dot_kq : 0.0;                                                                                    \
    }
#define LOAD_AND_SCORE_K(t)                                                                                            \
    {                                                                                                                  \
        LOAD_K(t)                                                                                                      \
        [[unroll]] for (uint h = 0u; h < QUERIES; ++h) SCORE(t, h, late_parts[h * TILE + t])                           \
    }
#define WEIGH_V(t)                                                                                                     \
    {                                                                                                                  \
        if (!EARLY_V) LOAD_V(t)                                                                                        \
        [[unroll]] for (uint h = 0u; h < QUERIES; ++h) {                                                               \
            float weight = WEIGHT_OF_KEY(p, h, t);                                                                     \
            bool weighs = tile + t < keys_end[h]; /* masked keys are never weighed: their V may be anything */         \
            [[unroll]] for (uint i = 0u; i < PAIRS; ++i) {                                                             \
                precise vec2 sum = fma(vec2(weight), v[V_OF(t) + i], out_acc[h * PAIRS + i]);                          \
                out_acc[h * PAIRS + i] = weighs ? sum : out_acc[h * PAIRS + i];                                        \
            }                                                                                                          \
        }                                                                                                              \
    }

// Queries first … end - 1, at most QUERIES, over their keys of one split. Query i is head i % GROUP of the KV head's, of row
// row0 + i / GROUP. The rows are of one slot, and a chain if several.
void attend(uint row0, uint first, uint end) {
    uint kv_head = gl_WorkGroupID.y;
    uint split_begin = gl_WorkGroupID.x * args.split;
    // What is read of rows is asked for at once: a GPU would wait for one after the other.
    uint slot = rows[row0 + first / GROUP].slot;
    uint positions[QUERIES], prefixes[QUERIES], live[QUERIES];
    [[unroll]] for (uint h = 0u; h < QUERIES; ++h) {
        uint row = row0 + min(first + h, end - 1u) / GROUP;
        positions[h] = rows[row].position;
        prefixes[h] = rows[row].prefix_len;
        live[h] = rows[row].live;
    }
    uint keys_end[QUERIES]; // of the split, for each query; split_begin: none
    uint last_end = split_begin;
    uint last = row0, prefix_len = 0u; // of the row that sees the most keys
    [[unroll]] for (uint h = 0u; h < QUERIES; ++h) {
        bool takes_part = all(bvec3(first + h < end, live[h] != 0u, positions[h] >= split_begin)); // without branches
        keys_end[h] = mix(split_begin, min(split_begin + args.split, positions[h] + 1u), takes_part);
        bool is_last = keys_end[h] > last_end;
        last = mix(last, row0 + (first + h) / GROUP, is_last);
        prefix_len = mix(prefix_len, prefixes[h], is_last);
        last_end = max(last_end, keys_end[h]);
    }
    uint lane = lane_index();
    uint own_key = lane / SHARE; // of a tile: whose score this lane keeps
    bool owns = lane * PAIRS < HEAD_PAIRS;
    uint first_pair = min(lane * PAIRS, HEAD_PAIRS - PAIRS);

    vec2 q[QUERIES * PAIRS];
    precise vec2 out_acc[QUERIES * PAIRS];
    float running_max[QUERIES];
    precise float running_sum[QUERIES];
    [[unroll]] for (uint h = 0u; h < QUERIES; ++h) {
        running_max[h] = kLowest;
        running_sum[h] = 0.0;
        uint query = min(first + h, end - 1u);
        uint head = (row0 + query / GROUP) * (args.n_heads + 2u * args.n_kv_heads) + kv_head * GROUP + query % GROUP;
        [[unroll]] for (uint i = 0u; i < PAIRS; ++i) {
            vec2 pair = qkv[head * HEAD_PAIRS + first_pair + i];
            q[h * PAIRS + i] = owns ? pair : vec2(0.0);
            out_acc[h * PAIRS + i] = vec2(0.0);
        }
    }

    uint run = args.split / TEAMS, begin = split_begin + team_index() * run;
#ifdef SUBGROUP
    uint run_end = min(begin + run, last_end);
#else
    uint run_end = begin + min(run, last_end - split_begin); // lanes meet at barriers: every team walks as far as the first
#endif
    for (uint tile = begin; tile < run_end; tile += TILE) {
        uint j = min(tile + own_key, last_end - 1u); // a masked key repeats the last one; its weight is 0
        uint kv_index = j < prefix_len ? j : rows[last].path[j - prefix_len];
        uint page = pages[slot * args.pages_per_slot + (kv_index >> args.page_bits)];
        uint in_page = kv_index & ((1u << args.page_bits) - 1u);
        uint first_token = (kv_head * args.n_pages + page) << args.page_bits;
        uint own_v = (first_token + in_page) * HEAD_DIM; // element
        uint own_k = own_v;
        float k_scale[BLOCKS];
        float v_scale[BLOCKS];
        if (CACHE_TYPE == kCacheQ8) { // scales lie after the codes of a page of K
            uint at = first_token * cache_scale_words(kCacheQ8, true, HEAD_DIM);
            own_k += 4u * at;
            at += ((first_token + (1u << args.page_bits)) * cache_element_words(kCacheQ8, HEAD_DIM)) + in_page * BLOCKS;
            [[unroll]] for (uint b = 0u; b < BLOCKS; ++b) {
                uint both = SCALE_WORD(at, b);
                k_scale[b] = half_value(both & 0xffffu);
                v_scale[b] = half_value(both >> 16);
            }
        }
        TELL_KEYS(own_k, own_v, k_scale, v_scale)

        vec2 k[(EARLY_K ? TILE : 1u) * PAIRS], v[(EARLY_V ? TILE : 1u) * PAIRS];
        float late_parts[EARLY_K ? 1u : QUERIES * TILE];
        if (EARLY_K) {
            FOR_TILE(LOAD_K)
        } else {
            FOR_TILE(LOAD_AND_SCORE_K)
        }
        if (EARLY_V) {
            FOR_TILE(LOAD_V)
        }
        precise float p[QUERIES];
        [[unroll]] for (uint h = 0u; h < QUERIES; ++h) {
            float parts[TILE];
            [[unroll]] for (uint t = 0u; t < TILE; ++t) {
                if (EARLY_K) SCORE(t, h, parts[t])
                else parts[t] = late_parts[h * TILE + t];
            }
            precise float scaled = tile_sums(parts) * args.scale;
            bool valid = tile + own_key < keys_end[h];
            float s = valid ? scaled : kLowest;
            float new_max = max(running_max[h], lane_max(s));
            p[h] = valid ? exp(s - new_max) : 0.0;
            precise float tile_sum = p[h]; // over the 8 keys
            tile_sum = tile_sum + lane_exchange(tile_sum, LANES / 2u);
            tile_sum = tile_sum + lane_exchange(tile_sum, LANES / 4u);
            tile_sum = tile_sum + lane_exchange(tile_sum, LANES / 8u);
            precise float keep = tile < keys_end[h] ? exp(running_max[h] - new_max) : 1.0;
            running_sum[h] = fma(running_sum[h], keep, tile_sum);
            running_max[h] = new_max;
            [[unroll]] for (uint i = 0u; i < PAIRS; ++i) out_acc[h * PAIRS + i] *= keep;
        }
        TELL_WEIGHTS(p)
        FOR_TILE(WEIGH_V)
    }

    if (TEAMS == 1u) {
        [[unroll]] for (uint h = 0u; h < QUERIES; ++h) {
            uint row = row0 + min(first + h, end - 1u) / GROUP;
            bool writes = keys_end[h] > split_begin && owns, whole = is_whole(row);
            [[unroll]] for (uint i = 0u; i < PAIRS; ++i)
                if (writes)
                    write_pair(row, kv_head * GROUP + (first + h) % GROUP, whole, lane * PAIRS + i, out_acc[h * PAIRS + i], running_max[h], running_sum[h]);
        }
    } else {
        [[unroll]] for (uint h = 0u; h < QUERIES; ++h) {
            uint at = (h * TEAMS + team_index()) * PART;
            [[unroll]] for (uint i = 0u; i < PAIRS; ++i) {
                if (owns) team_parts[at + 2u * (lane * PAIRS + i)] = out_acc[h * PAIRS + i].x;
                if (owns) team_parts[at + 2u * (lane * PAIRS + i) + 1u] = out_acc[h * PAIRS + i].y;
            }
            if (lane == 0u) team_parts[at + HEAD_DIM] = running_max[h];
            if (lane == 0u) team_parts[at + HEAD_DIM + 1u] = running_sum[h];
        }
        barrier();
        for (uint h = team_index(); h < QUERIES && first + h < end; h += TEAMS) {
            uint row = row0 + (first + h) / GROUP;
            if (rows[row].live == 0u || rows[row].position < split_begin) continue;
            bool whole = is_whole(row);
            JOIN(team_parts, h * TEAMS * PART, TEAMS)
            [[unroll]] for (uint i = 0u; i < PAIRS; ++i)
                if (owns) write_pair(row, kv_head * GROUP + (first + h) % GROUP, whole, lane * PAIRS + i, sums[i], largest, total);
        }
        barrier(); // who goes on to other queries writes there again
    }
}

void main() {
    uint row0 = gl_WorkGroupID.z * args.tile_rows;
    uint n = min(args.tile_rows, args.n_rows - row0);
    for (uint first = 0u; first < n;) { // chains
        uint end = first + 1u;
        while (end < n && rows[row0 + end].slot == rows[row0 + first].slot && in_chain(row0 + end) && in_chain(row0 + first)) ++end;
        for (uint query = first * GROUP; query < end * GROUP; query += QUERIES) attend(row0, query, min(query + QUERIES, end * GROUP));
        first = end;
    }
    if (COMBINES == 0u) return;
    memoryBarrierBuffer();
    if (TEAMS == 1u) team_barrier();
    else barrier();
    for (uint r = row0; r < row0 + n; ++r) {
        bool split = rows[r].live != 0u && rows[r].position >= gl_WorkGroupID.x * args.split && n_splits_of(r) > 1u;
        if (split) combine_if_last(r);
    }
}
