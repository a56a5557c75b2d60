// One workgroup per (split, KV head, tile of rows): K and V of a tile of keys come through shared memory once for all rows
// and grouped heads. Query, key and dimension always meet in the same order, and masked keys change nothing, so a row has
// the same bits in any company. Partials go to combine.comp.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "shared/prompt_attention_args.h"
#include "include/q8_scale.glsl"

layout(local_size_x = 128) in; // what every device has
layout(constant_id = 0) const uint HEAD_DIM = 64; // 32, 64 or 128
layout(constant_id = 1) const uint GROUP = 2;     // query heads per KV head, at most QUERIES
layout(constant_id = 2) const uint CACHE_TYPE = 0;
layout(constant_id = 3) const uint QUERIES = 64;  // at most prompt_queries(HEAD_DIM)

layout(push_constant) uniform Push { AttentionArgs args; };
layout(std430, binding = kAttentionQkv) readonly buffer Qkv { vec4 qkv[]; };
layout(std430, binding = kAttentionRows) readonly buffer Rows { Row rows[]; };
layout(std430, binding = kAttentionPages) readonly buffer Pages { uint pages[]; };
layout(std430, binding = kAttentionK) readonly buffer K { uint k_cache[]; };
layout(std430, binding = kAttentionV) readonly buffer V { uint v_cache[]; };
layout(std430, binding = kAttentionPartials) writeonly buffer Partials { float partials[]; };

const uint THREADS = 128u;
const uint KEYS = kPromptKeys;
const uint ROWS = QUERIES / GROUP;
const uint HEAD_QUADS = HEAD_DIM / 4u;
const uint QUERY_QUADS = QUERIES / 4u;           // a thread owns one
const uint COLUMNS = THREADS / QUERY_QUADS;      // threads that share it
const uint OWN_KEYS = KEYS / COLUMNS;            // key COLUMNS · i + column
const uint OWN_QUADS = HEAD_QUADS / COLUMNS;     // of dimensions: COLUMNS · i + column
const uint K_QUADS = 8u;                         // of dimensions per slab of K
const uint V_KEYS = KEYS * K_QUADS / HEAD_QUADS; // per slab of V, which is as large
const uint BROUGHT = KEYS * K_QUADS / THREADS;   // quads of a slab that a thread brings: THREADS · i + its id
const uint PARTS = THREADS / QUERIES;            // threads that share a query's softmax
const uint PART_KEYS = KEYS / PARTS;
const float kLowest = -3.402823466e38;

shared vec4 q_tile[QUERIES * HEAD_QUADS]; // (query, dimension)
shared vec4 slab[KEYS * K_QUADS];         // (key, dimension); quads of K lie exchanged against bank conflicts
shared vec4 weights[KEYS * QUERY_QUADS];  // (key, query): scores, then exp
shared uint page_of[KEYS];                // of the tile; keys that no row has take the last one's, and are masked
shared float part_result[PARTS * QUERIES];
shared vec4 keep_tile[QUERY_QUADS];
shared float largest[QUERIES];
shared int position_of[QUERIES]; // of a query's row; -1: not of this run; the largest int: nobody reads its result
shared uint slot_of[ROWS];       // kNobody: not live
const uint kNobody = 0xffffffffu;

// Four elements of a key of the tile.
vec4 load_quad(bool of_k, uint kv_head, uint tile, uint key, uint quad) {
    uint first_token = (kv_head * args.n_pages + page_of[key]) << args.page_bits;
    uint in_page = tile + key & ((1u << args.page_bits) - 1u);
    uint element = (first_token + in_page) * HEAD_DIM + 4u * quad;
    if (CACHE_TYPE == kCacheF32) {
        return of_k ? uintBitsToFloat(uvec4(k_cache[element], k_cache[element + 1u], k_cache[element + 2u], k_cache[element + 3u]))
                    : uintBitsToFloat(uvec4(v_cache[element], v_cache[element + 1u], v_cache[element + 2u], v_cache[element + 3u]));
    }
    if (CACHE_TYPE == kCacheF16) {
        uint at = element / 2u;
        return of_k ? vec4(unpackHalf2x16(k_cache[at]), unpackHalf2x16(k_cache[at + 1u]))
                    : vec4(unpackHalf2x16(v_cache[at]), unpackHalf2x16(v_cache[at + 1u]));
    }
    // Scales of both sides lie after the codes of a page of K.
    uint scales = first_token * cache_scale_words(kCacheQ8, true, HEAD_DIM);
    int codes = int(of_k ? k_cache[element / 4u + scales] : v_cache[element / 4u]);
    scales += (first_token + (1u << args.page_bits)) * cache_element_words(kCacheQ8, HEAD_DIM);
    uint both = k_cache[scales + (in_page * HEAD_DIM + 4u * quad) / kCacheBlock];
    return half_value(of_k ? both & 0xffffu : both >> 16) *
           vec4(bitfieldExtract(codes, 0, 8), bitfieldExtract(codes, 8, 8), bitfieldExtract(codes, 16, 8), codes >> 24);
}

void main() {
    uint id = gl_LocalInvocationID.x;
    uint row0 = gl_WorkGroupID.z * ROWS;
    if (row0 >= args.n_rows) return;
    uint kv_head = gl_WorkGroupID.y;
    uint split_begin = gl_WorkGroupID.x * args.split;
    uint own_queries = id / COLUMNS, column = id % COLUMNS;
    uint query = id % QUERIES, part = id / QUERIES; // in the softmax

    if (id < ROWS) slot_of[id] = row0 + id < args.n_rows && rows[row0 + id].live != 0u ? rows[row0 + id].slot : kNobody;
    for (uint i = id; i < QUERIES * HEAD_QUADS; i += THREADS) {
        uint q = i / HEAD_QUADS;
        uint row = min(row0 + q / GROUP, args.n_rows - 1u);
        q_tile[i] = qkv[(row * (args.n_heads + 2u * args.n_kv_heads) + kv_head * GROUP + q % GROUP) * HEAD_QUADS + i % HEAD_QUADS];
    }
    if (part == 0u) largest[query] = kLowest;
    precise float total = 0.0; // of `query`, where part is 0
    precise vec4 out_acc[4u * OWN_QUADS];
    for (uint i = 0u; i < 4u * OWN_QUADS; ++i) out_acc[i] = vec4(0.0);
    barrier();

    // Runs of rows of one slot; usually there is one.
    for (uint first = 0u; first < ROWS;) {
        uint slot = slot_of[first], next = first + 1u;
        while (next < ROWS && slot_of[next] == slot) ++next;
        uint run_first = first;
        first = next;
        if (slot == kNobody) continue;
        if (part == 0u) {
            uint r = query / GROUP;
            bool inside = run_first <= r && r < next;
            position_of[query] = inside ? int(rows[row0 + r].position) : r < ROWS && slot_of[r] != kNobody ? -1 : 0x7fffffff;
        }
        barrier();
        int nearest = 0x7fffffff, farthest = -1;
        for (uint r = 0u; r < ROWS; ++r) {
            int position = position_of[r * GROUP];
            nearest = min(nearest, position);
            if (position != 0x7fffffff) farthest = max(farthest, position);
        }
        uint key_end = min(split_begin + args.split, uint(farthest + 1));
        ivec4 own_positions;
        for (uint i = 0u; i < 4u; ++i) own_positions[i] = position_of[4u * own_queries + i];

        // A loop alone may run its first turn for no invocation, and then asks for buffers at null (llvmpipe of Mesa 25.2).
        if (split_begin < key_end)
        for (uint tile = split_begin; tile < key_end; tile += KEYS) {
            if (id < KEYS) page_of[id] = pages[slot * args.pages_per_slot + (min(tile + id, key_end - 1u) >> args.page_bits)];
            barrier();
            precise float score[4u * OWN_KEYS];
            for (uint i = 0u; i < 4u * OWN_KEYS; ++i) score[i] = 0.0;
            // Slabs stay loops: written out, they are more code than an instruction cache holds.
            [[dont_unroll]] for (uint quad0 = 0u; quad0 < HEAD_QUADS; quad0 += K_QUADS) {
                vec4 brought[BROUGHT]; // all asked for before the first is written
                [[unroll]] for (uint i = 0u; i < BROUGHT; ++i)
                    brought[i] = load_quad(true, kv_head, tile, (THREADS * i + id) / K_QUADS, quad0 + id % K_QUADS);
                [[unroll]] for (uint i = 0u; i < BROUGHT; ++i) {
                    uint key = (THREADS * i + id) / K_QUADS;
                    slab[key * K_QUADS + (id % K_QUADS ^ key % K_QUADS)] = brought[i];
                }
                barrier();
                for (uint quad = 0u; quad < K_QUADS; ++quad) {
                    vec4 q[4];
                    [[unroll]] for (uint i = 0u; i < 4u; ++i) q[i] = q_tile[(4u * own_queries + i) * HEAD_QUADS + quad0 + quad];
                    [[unroll]] for (uint j = 0u; j < OWN_KEYS; ++j) {
                        uint key = COLUMNS * j + column;
                        vec4 k = slab[key * K_QUADS + (quad ^ key % K_QUADS)];
                        [[unroll]] for (uint i = 0u; i < 4u; ++i) {
                            precise float sum = fma(q[i].x, k.x, score[4u * j + i]);
                            sum = fma(q[i].y, k.y, sum);
                            sum = fma(q[i].z, k.z, sum);
                            sum = fma(q[i].w, k.w, sum);
                            score[4u * j + i] = sum;
                        }
                    }
                }
                barrier();
            }
            for (uint j = 0u; j < OWN_KEYS; ++j) {
                precise vec4 scaled = vec4(score[4u * j], score[4u * j + 1u], score[4u * j + 2u], score[4u * j + 3u]) * args.scale;
                weights[(COLUMNS * j + column) * QUERY_QUADS + own_queries] = scaled;
            }
            barrier();

            int limit = min(position_of[query], int(key_end) - 1); // the query's last key
            float old_max = largest[query], new_max = old_max;
            for (uint j = 0u; j < PART_KEYS; ++j) {
                uint key = part * PART_KEYS + j;
                if (int(tile + key) <= limit) new_max = max(new_max, weights[key * QUERY_QUADS + query / 4u][query % 4u]);
            }
            part_result[part * QUERIES + query] = new_max;
            barrier();
            for (uint i = 0u; i < PARTS; ++i) new_max = max(new_max, part_result[i * QUERIES + query]);
            precise float sum = 0.0;
            for (uint j = 0u; j < PART_KEYS; ++j) {
                uint key = part * PART_KEYS + j;
                float s = weights[key * QUERY_QUADS + query / 4u][query % 4u];
                float p = int(tile + key) <= limit ? exp(s - new_max) : 0.0;
                weights[key * QUERY_QUADS + query / 4u][query % 4u] = p;
                sum += p;
            }
            barrier();
            part_result[part * QUERIES + query] = sum;
            barrier();
            if (part == 0u) {
                for (uint i = 1u; i < PARTS; ++i) sum += part_result[i * QUERIES + query];
                precise float keep = exp(old_max - new_max);
                total = fma(total, keep, sum);
                keep_tile[query / 4u][query % 4u] = keep;
                largest[query] = new_max;
            }
            barrier();
            vec4 keep = keep_tile[own_queries];
            for (uint i = 0u; i < 4u; ++i)
                for (uint d = 0u; d < OWN_QUADS; ++d) {
                    precise vec4 kept = out_acc[OWN_QUADS * i + d] * keep[i];
                    out_acc[OWN_QUADS * i + d] = kept;
                }
            bool all_see_all = int(tile + KEYS) <= nearest + 1 && tile + KEYS <= key_end;
            [[dont_unroll]] for (uint key0 = 0u; key0 < KEYS; key0 += V_KEYS) {
                vec4 brought[BROUGHT]; // as of K
                [[unroll]] for (uint i = 0u; i < BROUGHT; ++i)
                    brought[i] = load_quad(false, kv_head, tile, key0 + (THREADS * i + id) / HEAD_QUADS, (THREADS * i + id) % HEAD_QUADS);
                [[unroll]] for (uint i = 0u; i < BROUGHT; ++i) slab[THREADS * i + id] = brought[i];
                barrier();
                for (uint j = 0u; j < V_KEYS; ++j) {
                    vec4 p = weights[(key0 + j) * QUERY_QUADS + own_queries];
                    // A masked key is not weighed by 0: its V may be anything.
                    bvec4 sees = all_see_all ? bvec4(true) : lessThanEqual(ivec4(int(tile + key0 + j)), min(own_positions, ivec4(int(key_end) - 1)));
                    [[unroll]] for (uint d = 0u; d < OWN_QUADS; ++d) {
                        vec4 v = slab[j * HEAD_QUADS + COLUMNS * d + column];
                        [[unroll]] for (uint i = 0u; i < 4u; ++i) {
                            precise vec4 more = fma(vec4(p[i]), v, out_acc[OWN_QUADS * i + d]);
                            if (sees[i]) out_acc[OWN_QUADS * i + d] = more;
                        }
                    }
                }
                barrier();
            }
        }
        barrier();
    }

    for (uint i = 0u; i < 4u; ++i) {
        uint q = 4u * own_queries + i, r = q / GROUP;
        if (r >= ROWS || slot_of[r] == kNobody || rows[row0 + r].position < split_begin) continue;
        uint base = (((row0 + r) * args.n_heads + kv_head * GROUP + q % GROUP) * args.max_splits + gl_WorkGroupID.x) * (HEAD_DIM + 2u);
        for (uint d = 0u; d < OWN_QUADS; ++d)
            for (uint c = 0u; c < 4u; ++c)
                partials[base + 4u * (COLUMNS * d + column) + c] = out_acc[OWN_QUADS * i + d][c];
    }
    uint r = query / GROUP;
    if (part != 0u || r >= ROWS || slot_of[r] == kNobody || rows[row0 + r].position < split_begin) return;
    uint base = (((row0 + r) * args.n_heads + kv_head * GROUP + query % GROUP) * args.max_splits + gl_WorkGroupID.x) * (HEAD_DIM + 2u);
    partials[base + HEAD_DIM] = largest[query];
    partials[base + HEAD_DIM + 1u] = total;
}
