// One team per (split, KV head, row). A lane owns PAIRS pairs of dimensions of q, K and V, so that heads are read in one
// piece; keys go in tiles of 8, whose scores lie in the first 8 lanes (and repeat in the others), and the softmax runs
// online between tiles. Splits and tiles lie at absolute positions, so a row walks the same ones in any company.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/attention_args.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint LANES = 8; // at least TILE
layout(constant_id = 1) const uint HEAD_DIM = 64;
layout(constant_id = 2) const uint GROUP = 2; // query heads per KV head
layout(constant_id = 3) const uint CACHE_F32 = 0;
const uint TEAMS = 1;
#include "include/reduce.glsl"
#include "include/wide.glsl"

layout(push_constant) uniform Push { AttentionArgs args; };
layout(std430, binding = kAttentionQkv) readonly buffer Qkv { vec2 qkv[]; };
layout(std430, binding = kAttentionRows) readonly buffer Rows { Row rows[]; };
layout(std430, binding = kAttentionPages) readonly buffer Pages { uint pages[]; };
layout(std430, binding = kAttentionK) readonly buffer K { WIDE_WORD k_cache[]; };
layout(std430, binding = kAttentionV) readonly buffer V { WIDE_WORD v_cache[]; };
layout(std430, binding = kAttentionPartials) writeonly buffer Partials { float partials[]; };

const uint TILE = 8u;                                 // keys
const uint HEAD_PAIRS = HEAD_DIM / 2u;
const uint PAIRS = (HEAD_PAIRS + LANES - 1u) / LANES; // a lane owns pairs lane · PAIRS …; lanes beyond the head own none
const float kLowest = -3.402823466e38;

// The pairs that `lane` owns of the head that begins at `element` of a cache.
#ifdef WIDE
#define LOAD_PAIRS(cache, element, pairs)                                                                              \
    for (uint i = 0u; i < PAIRS; ++i) {                                                                                \
        uint pair = min(lane * PAIRS + i, HEAD_PAIRS - 1u);                                                            \
        if (CACHE_F32 != 0u) {                                                                                         \
            pairs[i] = uintBitsToFloat(unpackUint2x32(cache[(element) / 2u + pair]));                                  \
        } else if (i % 2u == 0u || PAIRS % 2u != 0u) {                                                                 \
            uvec2 w = unpackUint2x32(cache[(element) / 4u + pair / 2u]);                                               \
            pairs[i] = unpackHalf2x16(PAIRS % 2u != 0u && pair % 2u != 0u ? w.y : w.x);                                \
            if (PAIRS % 2u == 0u) pairs[i + 1u] = unpackHalf2x16(w.y);                                                 \
        }                                                                                                              \
    }
#else
#define LOAD_PAIRS(cache, element, pairs)                                                                              \
    for (uint i = 0u; i < PAIRS; ++i) {                                                                                \
        uint pair = min(lane * PAIRS + i, HEAD_PAIRS - 1u);                                                            \
        if (CACHE_F32 != 0u)                                                                                           \
            pairs[i] = uintBitsToFloat(uvec2(cache[(element) + 2u * pair], cache[(element) + 2u * pair + 1u]));        \
        else                                                                                                           \
            pairs[i] = unpackHalf2x16(cache[(element) / 2u + pair]);                                                   \
    }
#endif

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
        uint own_element = (((kv_head * args.n_pages + page) << args.page_bits) + in_page) * HEAD_DIM;

        float score[GROUP];
        for (uint t = 0u; t < TILE; ++t) {
            uint element = lane_broadcast(own_element, t);
            vec2 k[PAIRS];
            LOAD_PAIRS(k_cache, element, k)
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
                uint element = lane_broadcast(own_element, t);
                vec2 v[PAIRS];
                LOAD_PAIRS(v_cache, element, v)
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

    for (uint g = 0u; g < GROUP; ++g) {
        uint head = kv_head * GROUP + g;
        uint base = ((r * args.n_heads + head) * args.max_splits + gl_WorkGroupID.x) * (HEAD_DIM + 2u);
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
}
