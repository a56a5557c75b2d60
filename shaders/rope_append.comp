// One workgroup per row; an invocation owns a rotated pair, elements 2i and 2i + 1, so that 16-bit cache entries are written
// in pairs. Into a q8_0 cache eight invocations write a block of 32 elements of K and of V.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "shared/rope_append_args.h"
#include "include/q8_scale.glsl"

layout(local_size_x = 64) in;
layout(constant_id = 0) const uint HEAD_DIM = 64;
layout(constant_id = 1) const uint CACHE_TYPE = 0;
layout(constant_id = 2) const uint AHEAD = 4; // pairs that an invocation asks for before it writes the first

layout(push_constant) uniform Push { RopeAppendArgs args; };
layout(std430, binding = kRopeQkv) buffer Qkv { float qkv[]; };
layout(std430, binding = kRopeRows) readonly buffer Rows { Row rows[]; };
layout(std430, binding = kRopeTable) readonly buffer Table { vec2 table[]; };
layout(std430, binding = kRopePages) readonly buffer Pages { uint pages[]; };
layout(std430, binding = kRopeK) writeonly buffer K { uint k_cache[]; };
layout(std430, binding = kRopeV) writeonly buffer V { uint v_cache[]; };

const uint HALF = HEAD_DIM / 2u;
const uint QUADS = HEAD_DIM / 4u; // per head
const uint BLOCK_QUADS = kCacheBlock / 4u;

shared uvec2 largest_bits[gl_WorkGroupSize.x]; // magnitudes of K and of V

// t: cosine and sine.
vec2 turned_by(vec2 pair, vec2 t) {
    precise vec2 turned = vec2(pair.x * t.x - pair.y * t.y, pair.y * t.x + pair.x * t.y);
    return turned;
}
// Elements d and d + 1 of the head that begins at `at`, rotated; d is even.
vec2 rotated(uint at, uint d, uint position) { return turned_by(vec2(qkv[at + d], qkv[at + d + 1u]), table[position * HALF + d / 2u]); }

// Finite magnitudes, infinity and NaN ascend as integers do.
uint largest_magnitude(vec4 v) {
    uvec4 bits = floatBitsToUint(v) & 0x7fffffffu;
    return max(max(bits.x, bits.y), max(bits.z, bits.w));
}

uint scale_of_block(uint magnitude_bits) {
    if (magnitude_bits >= 0x7f800000u) return kNanScale;
    precise float scale = uintBitsToFloat(magnitude_bits) * (1.0 / 127.0);
    // Below half the smallest scale all codes are 0.
    return uintBitsToFloat(magnitude_bits) > 0.5 * kScaleUnit ? encode_scale(scale) : 0u;
}

// The nearest multiples of the scale, ties to even, whatever the device's division does: code · scale and its distance
// from v are exact, so a quotient that went wrong by a rounding is seen.
uint codes_of(vec4 v, uint scale_bits) {
    if (scale_bits == 0u || scale_bits == kNanScale) return 0u;
    float scale = half_value(scale_bits);
    float inverse = 1.0 / scale;
    uint word = 0u;
    for (uint c = 0u; c < 4u; ++c) {
        precise float code = clamp(roundEven(v[c] * inverse), -127.0, 127.0);
        precise float rest = abs(v[c] - code * scale);
        bool beyond = v[c] > code * scale;
        bool odd = (int(code) & 1) != 0;
        if (rest > 0.5 * scale || (rest == 0.5 * scale && odd)) code += beyond ? 1.0 : -1.0;
        word |= (uint(int(clamp(code, -127.0, 127.0))) & 0xffu) << (8u * c);
    }
    return word;
}

void append_q8(uint row_base, uint position, uint page, uint in_page) {
    uint n_quads = args.n_kv_heads * QUADS;
    uint element_words = cache_element_words(kCacheQ8, HEAD_DIM);
    uint scale_words = cache_scale_words(kCacheQ8, true, HEAD_DIM);
    for (uint first = 0u; first < n_quads; first += gl_WorkGroupSize.x) {
        uint quad = min(first + gl_LocalInvocationID.x, n_quads - 1u); // the idle meet the barriers too
        uint kv_head = quad / QUADS;
        uint d = 4u * (quad % QUADS);
        uint k_at = row_base + (args.n_heads + kv_head) * HEAD_DIM;
        uint v_at = k_at + args.n_kv_heads * HEAD_DIM + d;
        vec4 k = vec4(rotated(k_at, d, position), rotated(k_at, d + 2u, position));
        vec4 v = vec4(qkv[v_at], qkv[v_at + 1u], qkv[v_at + 2u], qkv[v_at + 3u]);

        largest_bits[gl_LocalInvocationID.x] = uvec2(largest_magnitude(k), largest_magnitude(v));
        barrier();
        uint block = gl_LocalInvocationID.x / BLOCK_QUADS * BLOCK_QUADS;
        uvec2 largest = largest_bits[block];
        for (uint n = 1u; n < BLOCK_QUADS; ++n) largest = max(largest, largest_bits[block + n]);
        barrier();

        if (first + gl_LocalInvocationID.x >= n_quads) continue;
        uint k_scale = scale_of_block(largest.x);
        uint v_scale = scale_of_block(largest.y);
        uint head_page = kv_head * args.n_pages + page;
        uint token = in_page * element_words + d / 4u;
        uint k_page = (head_page << args.page_bits) * (element_words + scale_words);
        k_cache[k_page + token] = codes_of(k, k_scale);
        v_cache[(head_page << args.page_bits) * element_words + token] = codes_of(v, v_scale);
        if (quad % BLOCK_QUADS == 0u)
            k_cache[k_page + (element_words << args.page_bits) + in_page * scale_words + d / kCacheBlock] =
                k_scale | v_scale << 16;
    }
}

// To q or to the cache, as the pair is one of q, of K or of V.
void write_pair(uint task, vec2 pair, uint row_base, uint page, uint in_page) {
    uint head = task / HALF, d = 2u * (task % HALF);
    uint at = row_base + head * HEAD_DIM;
    bool is_v = head >= args.n_heads + args.n_kv_heads;
    if (head < args.n_heads) {
        qkv[at + d] = pair.x;
        qkv[at + d + 1u] = pair.y;
        return;
    }
    uint kv_head = head - args.n_heads - (is_v ? args.n_kv_heads : 0u);
    uint element = (((kv_head * args.n_pages + page) << args.page_bits) + in_page) * HEAD_DIM + d;
    if (CACHE_TYPE == kCacheF32) {
        if (is_v) {
            v_cache[element] = floatBitsToUint(pair.x);
            v_cache[element + 1u] = floatBitsToUint(pair.y);
        } else {
            k_cache[element] = floatBitsToUint(pair.x);
            k_cache[element + 1u] = floatBitsToUint(pair.y);
        }
    } else if (is_v) {
        v_cache[element / 2u] = packHalf2x16(pair);
    } else {
        k_cache[element / 2u] = packHalf2x16(pair);
    }
}

void main() {
    uint r = gl_WorkGroupID.x;
    if (rows[r].live == 0u) return;
    uint slot = rows[r].slot;
    uint position = rows[r].position;
    uint kv_index = rows[r].kv_index;
    uint page = pages[slot * args.pages_per_slot + (kv_index >> args.page_bits)];
    uint in_page = kv_index & ((1u << args.page_bits) - 1u);
    uint all_heads = args.n_heads + 2u * args.n_kv_heads;
    uint row_base = r * all_heads * HEAD_DIM;

    if (CACHE_TYPE == kCacheQ8) append_q8(row_base, position, page, in_page);
    uint n_tasks = (CACHE_TYPE == kCacheQ8 ? args.n_heads : all_heads) * HALF;
    for (uint first = gl_LocalInvocationID.x; first < n_tasks; first += AHEAD * gl_WorkGroupSize.x) {
        vec2 pairs[AHEAD];
        [[unroll]] for (uint i = 0u; i < AHEAD; ++i) {
            uint task = first + i * gl_WorkGroupSize.x < n_tasks ? first + i * gl_WorkGroupSize.x : first; // nobody else's, who may write it
            uint head = task / HALF, d = 2u * (task % HALF), at = row_base + head * HEAD_DIM + d;
            vec2 pair = vec2(qkv[at], qkv[at + 1u]), turned = turned_by(pair, table[position * HALF + d / 2u]);
            pairs[i] = mix(turned, pair, bvec2(head >= args.n_heads + args.n_kv_heads));
        }
        [[unroll]] for (uint i = 0u; i < AHEAD; ++i)
            if (first + i * gl_WorkGroupSize.x < n_tasks) write_pair(first + i * gl_WorkGroupSize.x, pairs[i], row_base, page, in_page);
    }
}
