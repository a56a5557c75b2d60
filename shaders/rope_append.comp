// One workgroup per row; an invocation owns elements 2i, 2i + 1 and their partners half a head further, so that 16-bit
// cache entries are written in pairs.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/rope_append_args.h"

layout(local_size_x = 64) in;
layout(constant_id = 0) const uint HEAD_DIM = 64;
layout(constant_id = 1) const uint CACHE_F32 = 0;

layout(push_constant) uniform Push { RopeAppendArgs args; };
layout(std430, binding = kRopeQkv) buffer Qkv { float qkv[]; };
layout(std430, binding = kRopeRows) readonly buffer Rows { Row rows[]; };
layout(std430, binding = kRopeTable) readonly buffer Table { vec2 table[]; };
layout(std430, binding = kRopePages) readonly buffer Pages { uint pages[]; };
layout(std430, binding = kRopeK) writeonly buffer K { uint k_cache[]; };
layout(std430, binding = kRopeV) writeonly buffer V { uint v_cache[]; };

const uint HALF = HEAD_DIM / 2u;
const uint QUADS = HEAD_DIM / 4u; // per head

void main() {
    uint r = gl_WorkGroupID.x;
    if (rows[r].live == 0u) return;
    uint slot = rows[r].slot;
    uint position = rows[r].position;
    uint kv_index = rows[r].kv_index;
    uint page = pages[slot * args.pages_per_slot + (kv_index >> args.page_bits)];
    uint all_heads = args.n_heads + 2u * args.n_kv_heads;
    uint row_base = r * all_heads * HEAD_DIM;

    for (uint task = gl_LocalInvocationID.x; task < all_heads * QUADS; task += gl_WorkGroupSize.x) {
        uint head = task / QUADS;
        uint i = 2u * (task % QUADS); // first of two neighbours in the lower half
        uint at = row_base + head * HEAD_DIM + i;
        vec2 low = vec2(qkv[at], qkv[at + 1u]);
        vec2 high = vec2(qkv[at + HALF], qkv[at + HALF + 1u]);
        bool is_v = head >= args.n_heads + args.n_kv_heads;
        if (!is_v) {
            vec2 t0 = table[position * HALF + i];
            vec2 t1 = table[position * HALF + i + 1u];
            precise vec2 a = vec2(low.x * t0.x - high.x * t0.y, low.y * t1.x - high.y * t1.y);
            precise vec2 b = vec2(high.x * t0.x + low.x * t0.y, high.y * t1.x + low.y * t1.y);
            low = a;
            high = b;
        }
        if (head < args.n_heads) {
            qkv[at] = low.x;
            qkv[at + 1u] = low.y;
            qkv[at + HALF] = high.x;
            qkv[at + HALF + 1u] = high.y;
            continue;
        }
        uint kv_head = head - args.n_heads - (is_v ? args.n_kv_heads : 0u);
        uint in_page = kv_index & ((1u << args.page_bits) - 1u);
        uint element = (((kv_head * args.n_pages + page) << args.page_bits) + in_page) * HEAD_DIM + i;
        if (CACHE_F32 != 0u) {
            if (is_v) {
                v_cache[element] = floatBitsToUint(low.x);
                v_cache[element + 1u] = floatBitsToUint(low.y);
                v_cache[element + HALF] = floatBitsToUint(high.x);
                v_cache[element + HALF + 1u] = floatBitsToUint(high.y);
            } else {
                k_cache[element] = floatBitsToUint(low.x);
                k_cache[element + 1u] = floatBitsToUint(low.y);
                k_cache[element + HALF] = floatBitsToUint(high.x);
                k_cache[element + HALF + 1u] = floatBitsToUint(high.y);
            }
        } else if (is_v) {
            v_cache[element / 2u] = packHalf2x16(low);
            v_cache[(element + HALF) / 2u] = packHalf2x16(high);
        } else {
            k_cache[element / 2u] = packHalf2x16(low);
            k_cache[(element + HALF) / 2u] = packHalf2x16(high);
        }
    }
}
