// The mat-vec family's member for attention's input: RMSNorm, the joined projections, rotation of q and k, append of k and v.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/qkv_args.h"
#include "shared/weight_format.h"

layout(constant_id = 8) const uint PREPARED = 0;
layout(constant_id = 9) const uint HEAD_DIM = 64;
layout(constant_id = 10) const uint CACHE_TYPE = 0; // not kCacheQ8: a scale is of 32 elements
layout(push_constant) uniform Push { QkvArgs args; };
#define NORM
#define PAIRS_OUT
#include "include/dots.glsl"

layout(std430, binding = kMatvecY) writeonly buffer Y { float y[]; };
layout(std430, binding = kQkvRows) readonly buffer Rows { Row rows[]; };
layout(std430, binding = kQkvTable) readonly buffer Table { vec2 table[]; };
layout(std430, binding = kQkvPages) readonly buffer Pages { uint pages[]; };
layout(std430, binding = kQkvK) writeonly buffer K { uint k_cache[]; };
layout(std430, binding = kQkvV) writeonly buffer V { uint v_cache[]; };

// Rotates a pair of q or k, and puts k and v into the cache. What is read is asked for before the first branch: a GPU would wait for
// one load after the other.
void emit_pair(uint out_index, uint row, float even, float odd) {
    uint at = args.first_out + out_index; // among q, k and v
    uint head = at / HEAD_DIM;
    uint element = at % HEAD_DIM;
    bool is_v = head >= args.n_heads + args.n_kv_heads;
    uint position = rows[row].position, slot = rows[row].slot, kv_index = rows[row].kv_index;
    bool live = rows[row].live != 0u; // else the rest of the row may be anything
    uint turn_at = position * (HEAD_DIM / 2u) + element / 2u;
    uint page_at = slot * args.pages_per_slot + (kv_index >> args.page_bits);
    vec2 turn = table[live ? turn_at : 0u];
    uint page = pages[live ? page_at : 0u];
    if (!live) return;
    precise vec2 rotated = vec2(even * turn.x - odd * turn.y, odd * turn.x + even * turn.y);
    vec2 pair = is_v ? vec2(even, odd) : rotated;
    if (head < args.n_heads) {
        y[row * args.y_stride + at] = pair.x;
        y[row * args.y_stride + at + 1u] = pair.y;
        return;
    }
    uint kv_head = head - args.n_heads - (is_v ? args.n_kv_heads : 0u);
    uint in_page = kv_index & ((1u << args.page_bits) - 1u);
    uint cached = (((kv_head * args.n_pages + page) << args.page_bits) + in_page) * HEAD_DIM + element;
    if (CACHE_TYPE == kCacheF32) {
        if (is_v) {
            v_cache[cached] = floatBitsToUint(pair.x);
            v_cache[cached + 1u] = floatBitsToUint(pair.y);
        } else {
            k_cache[cached] = floatBitsToUint(pair.x);
            k_cache[cached + 1u] = floatBitsToUint(pair.y);
        }
    } else if (is_v) {
        v_cache[cached / 2u] = packHalf2x16(pair);
    } else {
        k_cache[cached / 2u] = packHalf2x16(pair);
    }
}

void main() {
#include "include/dot_rows.glsl"
}
