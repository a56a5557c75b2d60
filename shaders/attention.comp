// One team per (split, KV head, row). A lane owns PAIRS pairs of dimensions of q, K and V, so that heads are read in one
// piece; keys go in tiles of 8, whose scores lie in the first 8 lanes (and repeat in the others), and the softmax runs
// online between tiles. Splits and tiles lie at absolute positions, so a row walks the same ones in any company.
// COMBINES: the team that is done last with a row's head joins its splits, in their order, as combine.comp would.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/attention_args.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint LANES = 8; // at least TILE
layout(constant_id = 1) const uint HEAD_DIM = 64;
layout(constant_id = 2) const uint GROUP = 2; // query heads per KV head
layout(constant_id = 3) const uint CACHE_TYPE = 0;
layout(constant_id = 4) const uint COMBINES = 0;
const uint TEAMS = 1;
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

const uint TILE = 8u;                                 // keys
const uint HEAD_PAIRS = HEAD_DIM / 2u;
const uint PAIRS = (HEAD_PAIRS + LANES - 1u) / LANES; // a lane owns pairs lane · PAIRS …; lanes beyond the head own none
const float kLowest = -3.402823466e38;

const uint BLOCKS = CACHE_TYPE == kCacheQ8 ? HEAD_DIM / kCacheBlock : 1u; // scales of a key; a lane's pairs share one

// Two codes of a word: the lower or the upper ones.
vec2 code_pair(uint word, uint upper) {
    int bits = int(word >> 16u * upper);
    return vec2(bitfieldExtract(bits, 0, 8), bitfieldExtract(bits, 8, 8));
}
// The scale of the block that the lane's pairs lie in, of the key that lane t loaded.
#define BROADCAST_SCALE(scales, t, scale)                                                                              \
    float scale = lane_broadcast(scales[0], t);                                                                        \
    for (uint b = 1u; b < BLOCKS; ++b) {                                                                               \
        float other = lane_broadcast(scales[b], t);                                                                    \
        if (b == first_pair / (kCacheBlock / 2u)) scale = other;                                                       \
    }

// The pairs that `lane` owns of the head that begins at `element` of a cache.
#ifdef WIDE
#define LOAD_PAIRS(cache, element, pairs)                                                                              \
    for (uint i = 0u; i < PAIRS; ++i) {                                                                                \
        uint pair = min(lane * PAIRS + i, HEAD_PAIRS - 1u);                                                            \
        if (CACHE_TYPE == kCacheF32) {                                                                                 \
            pairs[i] = uintBitsToFloat(unpackUint2x32(cache[(element) / 2u + pair]));                                  \
        } else if (i % 2u == 0u || PAIRS % 2u != 0u) {                                                                 \
            uvec2 w = unpackUint2x32(cache[(element) / 4u + pair / 2u]);                                               \
            pairs[i] = unpackHalf2x16(PAIRS % 2u != 0u && pair % 2u != 0u ? w.y : w.x);                                \
            if (PAIRS % 2u == 0u) pairs[i + 1u] = unpackHalf2x16(w.y);                                                 \
        }                                                                                                              \
    }
#define LOAD_CODES(cache, element, scale, pairs)                                                                       \
    for (uint i = 0u; i < PAIRS; ++i) {                                                                                \
        uvec2 w = unpackUint2x32(cache[(element) / 8u + first_pair / 4u + i / 4u]);                                    \
        uint pair = (PAIRS < 4u ? first_pair + i : i) % 4u;                                                            \
        pairs[i] = scale * code_pair(pair < 2u ? w.x : w.y, pair % 2u);                                                \
    }
uint cache_word(uint64_t two, uint word) { return word % 2u == 0u ? unpackUint2x32(two).x : unpackUint2x32(two).y; }
#define SCALE_WORD(at, b) cache_word(k_cache[(at) / 2u + (b) / 2u], BLOCKS == 1u ? (at) : (b))
#else
#define LOAD_PAIRS(cache, element, pairs)                                                                              \
    for (uint i = 0u; i < PAIRS; ++i) {                                                                                \
        uint pair = min(lane * PAIRS + i, HEAD_PAIRS - 1u);                                                            \
        if (CACHE_TYPE == kCacheF32)                                                                                   \
            pairs[i] = uintBitsToFloat(uvec2(cache[(element) + 2u * pair], cache[(element) + 2u * pair + 1u]));        \
        else                                                                                                           \
            pairs[i] = unpackHalf2x16(cache[(element) / 2u + pair]);                                                   \
    }
#define LOAD_CODES(cache, element, scale, pairs)                                                                       \
    for (uint i = 0u; i < PAIRS; ++i) {                                                                                \
        uint w = cache[(element) / 4u + first_pair / 2u + i / 2u];                                                     \
        pairs[i] = scale * code_pair(w, (PAIRS < 2u ? first_pair : i) % 2u);                                           \
    }
#define SCALE_WORD(at, b) k_cache[(at) + (b)]
#endif

uint partials_of(uint r, uint head) { return (r * args.n_heads + head) * args.max_splits * (HEAD_DIM + 2u); }

void write_y(uint r, uint head, uint pair, vec2 weighed, float total) {
    precise vec2 v = weighed / total;
    uint at = (r * args.n_heads + head) * HEAD_DIM + 2u * pair;
    y[at] = v.x;
    y[at + 1u] = v.y;
}

void main() {
    uint r = gl_WorkGroupID.z;
    uint kv_head = gl_WorkGroupID.y;
    uint position = rows[r].position;
    uint split_begin = gl_WorkGroupID.x * args.split;
    if (rows[r].live == 0u || split_begin > position) return;
    uint slot = rows[r].slot;
    uint prefix_len = rows[r].prefix_len;
    uint split_end = min(split_begin + args.split, position + 1u);
    uint lane = lane_index();
    uint own_key = lane % TILE; // of a tile: whose score this lane keeps
    bool owns = lane * PAIRS < HEAD_PAIRS;
    uint first_pair = min(lane * PAIRS, HEAD_PAIRS - PAIRS);

    vec2 q[GROUP * PAIRS];
    precise vec2 out_acc[GROUP * PAIRS];
    float running_max[GROUP];
    precise float running_sum[GROUP];
    for (uint g = 0u; g < GROUP; ++g) {
        running_max[g] = kLowest;
        running_sum[g] = 0.0;
        uint head = r * (args.n_heads + 2u * args.n_kv_heads) + kv_head * GROUP + g;
        for (uint i = 0u; i < PAIRS; ++i) {
            q[g * PAIRS + i] = owns ? qkv[head * HEAD_PAIRS + lane * PAIRS + i] : vec2(0.0);
            out_acc[g * PAIRS + i] = vec2(0.0);
        }
    }

    for (uint tile = split_begin; tile < split_end; tile += TILE) {
        bool valid = tile + own_key < split_end;
        uint j = min(tile + own_key, split_end - 1u); // a masked key repeats the last one; its weight is 0
        uint kv_index = j < prefix_len ? j : rows[r].path[j - prefix_len];
        uint page = pages[slot * args.pages_per_slot + (kv_index >> args.page_bits)];
        uint in_page = kv_index & ((1u << args.page_bits) - 1u);
        uint first_token = (kv_head * args.n_pages + page) << args.page_bits;
        uint own_v = (first_token + in_page) * HEAD_DIM; // element
        uint own_k = own_v;
        float k_scale[BLOCKS];
        float v_scale[BLOCKS];
        if (CACHE_TYPE == kCacheQ8) { // scales lie behind the codes of a page of K
            uint at = first_token * cache_scale_words(kCacheQ8, true, HEAD_DIM);
            own_k += 4u * at;
            at += ((first_token + (1u << args.page_bits)) * cache_element_words(kCacheQ8, HEAD_DIM)) + in_page * BLOCKS;
            for (uint b = 0u; b < BLOCKS; ++b) {
                uint both = SCALE_WORD(at, b);
                k_scale[b] = decode_scale(both & 0xffffu);
                v_scale[b] = decode_scale(both >> 16);
            }
        }

        float score[GROUP];
        for (uint t = 0u; t < TILE; ++t) {
            uint element = lane_broadcast(own_k, t);
            vec2 k[PAIRS];
            if (CACHE_TYPE == kCacheQ8) {
                BROADCAST_SCALE(k_scale, t, scale)
                LOAD_CODES(k_cache, element, scale, k)
            } else {
                LOAD_PAIRS(k_cache, element, k)
            }
            for (uint g = 0u; g < GROUP; ++g) {
                precise float dot_kq = 0.0;
                for (uint i = 0u; i < PAIRS; ++i) {
                    dot_kq = fma(q[g * PAIRS + i].x, k[i].x, dot_kq);
                    dot_kq = fma(q[g * PAIRS + i].y, k[i].y, dot_kq);
                }
                float sum = lane_sum(owns ? dot_kq : 0.0);
                if (t == own_key) score[g] = sum;
            }
        }
        precise float p[GROUP];
        for (uint g = 0u; g < GROUP; ++g) {
            precise float scaled = score[g] * args.scale;
            float s = valid ? scaled : kLowest;
            float new_max = max(running_max[g], lane_max(s));
            p[g] = valid ? exp(s - new_max) : 0.0;
            precise float tile_sum = p[g]; // over the 8 keys; lanes that share a key hold the same
            tile_sum = tile_sum + lane_exchange(tile_sum, 4u);
            tile_sum = tile_sum + lane_exchange(tile_sum, 2u);
            tile_sum = tile_sum + lane_exchange(tile_sum, 1u);
            precise float keep = exp(running_max[g] - new_max);
            running_sum[g] = fma(running_sum[g], keep, tile_sum);
            running_max[g] = new_max;
            for (uint i = 0u; i < PAIRS; ++i) out_acc[g * PAIRS + i] *= keep;
        }
        for (uint t = 0u; t < TILE; ++t) {
            if (tile + t < split_end) { // masked keys are never weighed: their V may be anything
                uint element = lane_broadcast(own_v, t);
                vec2 v[PAIRS];
                if (CACHE_TYPE == kCacheQ8) {
                    BROADCAST_SCALE(v_scale, t, scale)
                    LOAD_CODES(v_cache, element, scale, v)
                } else {
                    LOAD_PAIRS(v_cache, element, v)
                }
                for (uint g = 0u; g < GROUP; ++g) {
                    float weight = lane_broadcast(p[g], t);
                    for (uint i = 0u; i < PAIRS; ++i) {
                        precise vec2 sum = fma(vec2(weight), v[i], out_acc[g * PAIRS + i]);
                        out_acc[g * PAIRS + i] = sum;
                    }
                }
            }
        }
    }

    uint n_splits = position / args.split + 1u;
    if (COMBINES != 0u && n_splits == 1u) {
        for (uint g = 0u; g < GROUP; ++g)
            for (uint i = 0u; i < PAIRS && owns; ++i)
                write_y(r, kv_head * GROUP + g, lane * PAIRS + i, out_acc[g * PAIRS + i], running_sum[g]);
        return;
    }
    for (uint g = 0u; g < GROUP; ++g) {
        uint base = partials_of(r, kv_head * GROUP + g) + gl_WorkGroupID.x * (HEAD_DIM + 2u);
        for (uint i = 0u; i < PAIRS && owns; ++i) {
            uint pair = lane * PAIRS + i;
            partials[base + 2u * pair] = out_acc[g * PAIRS + i].x;
            partials[base + 2u * pair + 1u] = out_acc[g * PAIRS + i].y;
        }
        if (lane == 0u) {
            partials[base + HEAD_DIM] = running_max[g];
            partials[base + HEAD_DIM + 1u] = running_sum[g];
        }
    }
    if (COMBINES == 0u) return;

    uint counter = r * args.n_kv_heads + kv_head;
    memoryBarrierBuffer();
    team_barrier();
    uint n_done = 0u;
    if (lane == 0u) n_done = atomicAdd(done[counter], 1u) + 1u;
    if (lane_broadcast(n_done, 0u) != n_splits) return;
    memoryBarrierBuffer();
    if (lane == 0u) done[counter] = 0u;
    for (uint g = 0u; g < GROUP; ++g) {
        uint base = partials_of(r, kv_head * GROUP + g);
        float largest = kLowest;
        for (uint s = 0u; s < n_splits; ++s) largest = max(largest, partials[base + s * (HEAD_DIM + 2u) + HEAD_DIM]);
        precise float total = 0.0;
        precise vec2 sums[PAIRS];
        for (uint i = 0u; i < PAIRS; ++i) sums[i] = vec2(0.0);
        for (uint s = 0u; s < n_splits; ++s) {
            uint at = base + s * (HEAD_DIM + 2u);
            float weight = exp(partials[at + HEAD_DIM] - largest);
            total = fma(partials[at + HEAD_DIM + 1u], weight, total);
            for (uint i = 0u; i < PAIRS && owns; ++i) {
                uint pair = at + 2u * (lane * PAIRS + i);
                precise vec2 sum = fma(vec2(partials[pair], partials[pair + 1u]), vec2(weight), sums[i]);
                sums[i] = sum;
            }
        }
        for (uint i = 0u; i < PAIRS && owns; ++i) write_y(r, kv_head * GROUP + g, lane * PAIRS + i, sums[i], total);
    }
}
