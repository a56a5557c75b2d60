// One team per (split, KV head, row): keys in tiles of LANES, lane = key for q · K, lane = dimensions for p · V, online
// softmax between tiles. Splits lie at absolute positions, so a row walks the same tiles in any company.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/attention_args.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint LANES = 8;
layout(constant_id = 1) const uint HEAD_DIM = 64;
layout(constant_id = 2) const uint GROUP = 2; // query heads per KV head
layout(constant_id = 3) const uint CACHE_F32 = 0;
const uint TEAMS = 1;
#include "include/reduce.glsl"

layout(push_constant) uniform Push { AttentionArgs args; };
layout(std430, binding = kAttentionQkv) readonly buffer Qkv { vec4 qkv[]; };
layout(std430, binding = kAttentionRows) readonly buffer Rows { Row rows[]; };
layout(std430, binding = kAttentionPages) readonly buffer Pages { uint pages[]; };
layout(std430, binding = kAttentionK) readonly buffer K { uvec4 k_cache[]; };
layout(std430, binding = kAttentionV) readonly buffer V { uint v_cache[]; };
layout(std430, binding = kAttentionPartials) writeonly buffer Partials { float partials[]; };

const uint QUADS = HEAD_DIM / 4u;                       // vec4 of one head
const uint PAIRS = (HEAD_DIM / 2u + LANES - 1u) / LANES; // pairs of dimensions a lane owns in p · V
const float kLowest = -3.402823466e38;

shared vec4 q_shared[GROUP * QUADS];

// Element index of a token's head in the pool.
uint kv_element(uint slot, uint kv_head, uint kv_index) {
    uint page = pages[slot * args.pages_per_slot + kv_index / args.page_size];
    return ((kv_head * args.n_pages + page) * args.page_size + kv_index % args.page_size) * HEAD_DIM;
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

    uint q_base = (r * (args.n_heads + 2u * args.n_kv_heads) + kv_head * GROUP) * QUADS;
    for (uint i = lane; i < GROUP * QUADS; i += LANES) q_shared[i] = qkv[q_base + i];
    barrier();

    float running_max[GROUP];
    precise float running_sum[GROUP];
    precise vec2 out_acc[GROUP * PAIRS];
    for (uint g = 0u; g < GROUP; ++g) {
        running_max[g] = kLowest;
        running_sum[g] = 0.0;
    }
    for (uint i = 0u; i < GROUP * PAIRS; ++i) out_acc[i] = vec2(0.0);

    for (uint tile = split_begin; tile < split_end; tile += LANES) {
        uint j = tile + lane;
        bool valid = j < split_end;
        uint key = min(j, split_end - 1u);
        uint kv_index = key < prefix_len ? key : rows[r].path[key - prefix_len];
        uint element = kv_element(slot, kv_head, kv_index);

        precise float score[GROUP];
        for (uint g = 0u; g < GROUP; ++g) score[g] = 0.0;
        for (uint c = 0u; c < HEAD_DIM / 8u; ++c) {
            vec4 ka, kb;
            if (CACHE_F32 != 0u) {
                ka = uintBitsToFloat(k_cache[element / 4u + 2u * c]);
                kb = uintBitsToFloat(k_cache[element / 4u + 2u * c + 1u]);
            } else {
                uvec4 w = k_cache[element / 8u + c];
                ka = vec4(unpackHalf2x16(w.x), unpackHalf2x16(w.y));
                kb = vec4(unpackHalf2x16(w.z), unpackHalf2x16(w.w));
            }
            for (uint g = 0u; g < GROUP; ++g) {
                vec4 qa = q_shared[g * QUADS + 2u * c];
                vec4 qb = q_shared[g * QUADS + 2u * c + 1u];
                precise float s = score[g];
                s = fma(qa.x, ka.x, s);
                s = fma(qa.y, ka.y, s);
                s = fma(qa.z, ka.z, s);
                s = fma(qa.w, ka.w, s);
                s = fma(qb.x, kb.x, s);
                s = fma(qb.y, kb.y, s);
                s = fma(qb.z, kb.z, s);
                s = fma(qb.w, kb.w, s);
                score[g] = s;
            }
        }
        precise float p[GROUP];
        for (uint g = 0u; g < GROUP; ++g) {
            float s = valid ? score[g] * args.scale : kLowest;
            float new_max = max(running_max[g], lane_max(s));
            p[g] = valid ? exp(s - new_max) : 0.0;
            precise float keep = exp(running_max[g] - new_max);
            running_sum[g] = fma(running_sum[g], keep, lane_sum(p[g]));
            running_max[g] = new_max;
            for (uint i = 0u; i < PAIRS; ++i) out_acc[g * PAIRS + i] *= keep;
        }
        for (uint t = 0u; t < LANES; ++t) {
            if (tile + t >= split_end) break; // masked keys are never read: their V may be anything
            uint v_index = tile + t < prefix_len ? tile + t : rows[r].path[tile + t - prefix_len];
            uint v_element = kv_element(slot, kv_head, v_index);
            vec2 v[PAIRS];
            for (uint i = 0u; i < PAIRS; ++i) {
                uint pair = min(lane * PAIRS + i, HEAD_DIM / 2u - 1u);
                if (CACHE_F32 != 0u)
                    v[i] = vec2(uintBitsToFloat(v_cache[v_element + 2u * pair]), uintBitsToFloat(v_cache[v_element + 2u * pair + 1u]));
                else
                    v[i] = unpackHalf2x16(v_cache[v_element / 2u + pair]);
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

    for (uint g = 0u; g < GROUP; ++g) {
        uint head = kv_head * GROUP + g;
        uint base = ((r * args.n_heads + head) * args.max_splits + gl_WorkGroupID.x) * (HEAD_DIM + 2u);
        for (uint i = 0u; i < PAIRS; ++i) {
            uint pair = lane * PAIRS + i;
            if (pair >= HEAD_DIM / 2u) continue;
            partials[base + 2u * pair] = out_acc[g * PAIRS + i].x;
            partials[base + 2u * pair + 1u] = out_acc[g * PAIRS + i].y;
        }
        if (lane == 0u) {
            partials[base + HEAD_DIM] = running_max[g];
            partials[base + HEAD_DIM + 1u] = running_sum[g];
        }
    }
}
