// prompt_attention on matrix units (GL_KHR_cooperative_matrix), over an f16 cache. One workgroup per (split, KV head, tile of
// rows): four subgroups, two by two, take half the queries with half the keys of each slab, then with half the dimensions.
// A split's scores all stay in registers, so that there is one maximum per split and nothing to rescale. Built by hand:
// shaders/README.md.
//
// Errors. Queries and weights are sums of two f16 (split_halves_args.h says why), keys and values are f16 as they lie.
// Bits. A row's scores and sums meet keys and dimensions in places that follow from positions alone; masked keys weigh +0 and
// their values are made finite first, so they change nothing. A row that weighs a value which is not finite becomes NaN whole.
#version 450
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "shared/prompt_attention_args.h"
#include "include/halves.glsl"

layout(local_size_x_id = 0) in; // four subgroups
layout(constant_id = 1) const uint HEAD_DIM = 64; // 32, 64 or 128
layout(constant_id = 2) const uint GROUP = 2;     // query heads per KV head, at most QUERIES
layout(constant_id = 3) const uint M = 16;        // queries, keys or dimensions, and depth of the device's tile: 8 or 16
layout(constant_id = 4) const uint N = 16;
layout(constant_id = 5) const uint K = 16;
layout(constant_id = 6) const uint PARTS = 2; // of queries and weights; 1 halves the work and rounds them to f16

layout(push_constant) uniform Push { AttentionArgs args; }; // whose split is KEYS
layout(std430, binding = kAttentionQkv) readonly buffer Qkv { vec4 qkv[]; };
layout(std430, binding = kAttentionRows) readonly buffer Rows { Row rows[]; };
layout(std430, binding = kAttentionPages) readonly buffer Pages { uint pages[]; };
layout(std430, binding = kAttentionK) readonly buffer Keys { uvec2 k_cache[]; };
layout(std430, binding = kAttentionV) readonly buffer Values { uvec2 v_cache[]; };
layout(std430, binding = kAttentionPartials) writeonly buffer Partials { float partials[]; };

const uint LANES = gl_WorkGroupSize.x / 4u;
const uint QUERIES = kMatrixQueries;
const uint KEYS = kMatrixKeys;
const uint ROWS = QUERIES / GROUP;
const uint SLAB_KEYS = HEAD_DIM == 128u ? 32u : 64u;
const uint SLABS = KEYS / SLAB_KEYS;
const uint HEAD_QUADS = HEAD_DIM / 4u;
const uint SLAB_STRIDE = HEAD_QUADS + 2u; // f16vec4 from key to key: 16-byte aligned, and 8 keys lie in different banks
const uint STRIDE = KEYS / 4u + 2u;       // from query to query
const uint OWN_QUERIES = QUERIES / 2u;    // of a subgroup
const uint QUERY_TILES = OWN_QUERIES / M;
const uint KEY_TILES = SLAB_KEYS / 2u / N; // per slab
const uint DIM_TILES = HEAD_DIM / 2u / N;
// Lanes that share a query of a tile of scores, and the keys that each takes.
const uint SHARERS = LANES < M ? 1u : LANES / M < N / 4u ? LANES / M : N / 4u;
const uint OWN_KEYS = N / SHARERS;
const uint TURNS = (M * SHARERS + LANES - 1u) / LANES;
const float WEIGHT_SCALE = 16384.0; // 2^14, as split_halves has it
const float kLowest = -3.402823466e38;

// Matrix units load 16 bytes at once and NVIDIA's do not say where they cannot: every array is a multiple of that, so that all begin at
// one, in whichever order a driver lays them out.
shared f16vec4 halves[PARTS * QUERIES * STRIDE]; // (part, query, dimension), then (part, query, key): weights
shared f16vec4 slab[SLAB_KEYS * SLAB_STRIDE];    // (key, dimension)
shared float results[4u * M * N];                // (subgroup, query, key or dimension): a tile of each
shared float part_sums[2u * SHARERS * QUERIES];  // (half of the keys, sharer, query)
shared uint largest_of[QUERIES]; // of a query's scores, as `ordered` makes it; 0: none yet
shared float total_of[QUERIES];  // of its weights
shared uint exponent_of[QUERIES]; // first the query's largest magnitude
shared int limit_of[QUERIES];     // the last key that it sees in this run and split; negative: none
shared uint slot_of[(ROWS + 3u) / 4u * 4u]; // kNobody: not live
shared uint first_bad[4]; // one is used: the first key of the run whose value is not finite
const uint kNobody = 0xffffffffu;

// Unsigned integers in the order of floats, none of them 0.
uint ordered(float x) {
    uint bits = floatBitsToUint(x);
    return (bits & 0x80000000u) != 0u ? ~bits : bits | 0x80000000u;
}
float unordered(uint bits) { return uintBitsToFloat((bits & 0x80000000u) != 0u ? bits & 0x7fffffffu : ~bits); }

uint query_quad(uint row0, uint kv_head, uint q, uint quad) {
    uint row = min(row0 + q / GROUP, args.n_rows - 1u);
    return (row * (args.n_heads + 2u * args.n_kv_heads) + kv_head * GROUP + q % GROUP) * HEAD_QUADS + quad;
}

bool is_finite(uint pair) { return (pair & 0x7c00u) != 0x7c00u && (pair & 0x7c000000u) != 0x7c000000u; }

// Keys or values first … of the split into the slab, zeros from key_end on. Values that are not finite become zeros, and known.
void load_slab(bool of_k, uint slot, uint kv_head, uint split_begin, uint first, uint key_end) {
    barrier();
    for (uint i = gl_LocalInvocationID.x; i < SLAB_KEYS * HEAD_QUADS; i += gl_WorkGroupSize.x) {
        uint key = first + i / HEAD_QUADS, quad = i % HEAD_QUADS;
        uvec2 bits = uvec2(0u);
        if (key < key_end) {
            uint position = split_begin + key;
            uint page = pages[slot * args.pages_per_slot + (position >> args.page_bits)];
            uint token = ((kv_head * args.n_pages + page) << args.page_bits) + (position & ((1u << args.page_bits) - 1u));
            bits = of_k ? k_cache[token * HEAD_QUADS + quad] : v_cache[token * HEAD_QUADS + quad];
        }
        if (!of_k && !(is_finite(bits.x) && is_finite(bits.y))) {
            bits = uvec2(0u);
            atomicMin(first_bad[0], key);
        }
        slab[i / HEAD_QUADS * SLAB_STRIDE + quad] = halves_of(bits.x, bits.y);
    }
    barrier();
}

// Where a query's partials of this split begin; kNobody where nobody reads them.
uint partials_of(uint row0, uint kv_head, uint q) {
    uint r = q / GROUP, split = gl_WorkGroupID.x;
    if (r >= ROWS) return kNobody;
    if (slot_of[r] == kNobody) return kNobody;
    if (rows[row0 + r].position < split * KEYS) return kNobody;
    return (((row0 + r) * args.n_heads + kv_head * GROUP + q % GROUP) * args.max_splits + split) * (HEAD_DIM + 2u);
}

void main() {
    uint id = gl_LocalInvocationID.x, n_threads = gl_WorkGroupSize.x;
    uint lane = gl_SubgroupInvocationID;
    uint row0 = gl_WorkGroupID.z * ROWS;
    if (row0 >= args.n_rows) return;
    uint kv_head = gl_WorkGroupID.y;
    uint split_begin = gl_WorkGroupID.x * KEYS;
    uint own_query0 = gl_SubgroupID % 2u * OWN_QUERIES, own_half = gl_SubgroupID / 2u;
    uint own_key0 = own_half * (SLAB_KEYS / 2u), own_dim0 = own_half * (HEAD_DIM / 2u), own_results = gl_SubgroupID * (M * N);

    for (uint r = id; r < ROWS; r += n_threads) slot_of[r] = row0 + r < args.n_rows && rows[row0 + r].live != 0u ? rows[row0 + r].slot : kNobody;
    for (uint q = id; q < QUERIES; q += n_threads) {
        largest_of[q] = 0u;
        total_of[q] = 0.0;
        exponent_of[q] = 0u;
    }
    barrier();
    for (uint i = id; i < QUERIES * HEAD_QUADS; i += n_threads) {
        uvec4 bits = floatBitsToUint(qkv[query_quad(row0, kv_head, i / HEAD_QUADS, i % HEAD_QUADS)]) & 0x7fffffffu;
        atomicMax(exponent_of[i / HEAD_QUADS], max(max(bits.x, bits.y), max(bits.z, bits.w)));
    }
    barrier();
    for (uint q = id; q < QUERIES; q += n_threads) exponent_of[q] = clamp(exponent_of[q] >> 23, 21u, 254u); // as split_halves

    coopmat<float, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator> out_acc[QUERY_TILES * DIM_TILES];
    [[unroll]] for (uint i = 0u; i < QUERY_TILES * DIM_TILES; ++i)
        out_acc[i] = coopmat<float, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator>(0.0);

    // Runs of rows of one slot; usually there is one.
    for (uint first = 0u; first < ROWS;) {
        uint slot = slot_of[first], next = first + 1u;
        while (next < ROWS && slot_of[next] == slot) ++next;
        uint run_first = first;
        first = next;
        if (slot == kNobody) continue;
        uint key_end = 0u; // of the run
        for (uint r = run_first; r < next; ++r) key_end = max(key_end, rows[row0 + r].position + 1u);
        if (key_end <= split_begin) continue;
        key_end = min(key_end - split_begin, KEYS); // from here on within the split
        barrier();
        for (uint q = id; q < QUERIES; q += n_threads) {
            uint r = q / GROUP;
            limit_of[q] = -1;
            if (run_first <= r && r < next) limit_of[q] = min(int(rows[row0 + r].position) - int(split_begin), int(KEYS) - 1);
        }
        if (id == 0u) first_bad[0] = KEYS;
        for (uint i = id; i < QUERIES * HEAD_QUADS; i += n_threads) {
            uint q = i / HEAD_QUADS, at = q * STRIDE + i % HEAD_QUADS;
            float scale = uintBitsToFloat((127u + 14u - (exponent_of[q] - 127u)) << 23);
            precise vec4 scaled = qkv[query_quad(row0, kv_head, q, i % HEAD_QUADS)] * scale;
            f16vec4 high, low;
            split_into_halves(scaled, high, low);
            halves[at] = high;
            if (PARTS == 2u) halves[QUERIES * STRIDE + at] = low;
        }

        // Scores: (own queries) · (own keys of every slab).
        coopmat<float, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator> score[SLABS * QUERY_TILES * KEY_TILES];
        [[unroll]] for (uint i = 0u; i < SLABS * QUERY_TILES * KEY_TILES; ++i)
            score[i] = coopmat<float, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator>(0.0);
        [[unroll]] for (uint s = 0u; s < SLABS; ++s) {
            if (s * SLAB_KEYS < key_end) {
                load_slab(true, slot, kv_head, split_begin, s * SLAB_KEYS, key_end);
                for (uint k = 0u; k < HEAD_DIM; k += K) {
                    coopmat<float16_t, gl_ScopeSubgroup, M, K, gl_MatrixUseA> high[QUERY_TILES], low[QUERY_TILES];
                    [[unroll]] for (uint q = 0u; q < QUERY_TILES; ++q) {
                        uint at = (own_query0 + q * M) * STRIDE + k / 4u;
                        coopMatLoad(high[q], halves, at, STRIDE, gl_CooperativeMatrixLayoutRowMajor);
                        if (PARTS == 2u) coopMatLoad(low[q], halves, at + QUERIES * STRIDE, STRIDE, gl_CooperativeMatrixLayoutRowMajor);
                    }
                    [[unroll]] for (uint t = 0u; t < KEY_TILES; ++t) {
                        coopmat<float16_t, gl_ScopeSubgroup, K, N, gl_MatrixUseB> keys;
                        coopMatLoad(keys, slab, (own_key0 + t * N) * SLAB_STRIDE + k / 4u, SLAB_STRIDE, gl_CooperativeMatrixLayoutColumnMajor);
                        [[unroll]] for (uint q = 0u; q < QUERY_TILES; ++q) {
                            uint i = (s * QUERY_TILES + q) * KEY_TILES + t;
                            score[i] = coopMatMulAdd(high[q], keys, score[i]);
                            if (PARTS == 2u) score[i] = coopMatMulAdd(low[q], keys, score[i]);
                        }
                    }
                }
            }
        }
        barrier(); // queries are read, their place is free

        // Once for the maximum, once for the weights. A tile at a time through shared memory: where an invocation's elements
        // lie is the device's secret.
        precise float sums[QUERY_TILES * TURNS];
        [[unroll]] for (uint i = 0u; i < QUERY_TILES * TURNS; ++i) sums[i] = 0.0;
        for (uint weigh = 0u; weigh < 2u; ++weigh) {
            [[unroll]] for (uint i = 0u; i < SLABS * QUERY_TILES * KEY_TILES; ++i) {
                coopMatStore(score[i], results, own_results, N, gl_CooperativeMatrixLayoutRowMajor);
                barrier();
                uint tile = i / KEY_TILES % QUERY_TILES;
                uint key0 = i / (KEY_TILES * QUERY_TILES) * SLAB_KEYS + own_key0 + i % KEY_TILES * N;
                [[unroll]] for (uint turn = 0u; turn < TURNS; ++turn) {
                    uint e = turn * LANES + lane;
                    if (e >= M * SHARERS) continue;
                    uint q = own_query0 + tile * M + e % M, from = e / M * OWN_KEYS;
                    int n_seen = limit_of[q] + 1 - int(key0 + from);
                    float unscale = uintBitsToFloat((exponent_of[q] - 14u) << 23); // exact
                    float largest = weigh == 0u ? kLowest : unordered(largest_of[q]);
                    for (uint quad = 0u; quad < OWN_KEYS / 4u; ++quad) {
                        vec4 weight = vec4(0.0);
                        [[unroll]] for (uint c = 0u; c < 4u; ++c) {
                            uint n = 4u * quad + c;
                            precise float scaled = results[own_results + e % M * N + from + n] * unscale;
                            scaled = scaled * args.scale;
                            if (int(n) >= n_seen) continue;
                            if (weigh == 0u) largest = max(largest, scaled);
                            else weight[c] = exp(scaled - largest);
                            if (weigh == 1u) sums[tile * TURNS + turn] += weight[c];
                        }
                        if (weigh == 1u) {
                            f16vec4 high, low;
                            split_into_halves(weight * WEIGHT_SCALE, high, low);
                            uint at = q * STRIDE + (key0 + from) / 4u + quad;
                            halves[at] = high;
                            if (PARTS == 2u) halves[QUERIES * STRIDE + at] = low;
                        }
                    }
                    if (weigh == 0u && n_seen > 0) atomicMax(largest_of[q], ordered(largest));
                }
                barrier();
            }
        }
        [[unroll]] for (uint i = 0u; i < QUERY_TILES * TURNS; ++i) {
            uint e = i % TURNS * LANES + lane;
            if (e < M * SHARERS) part_sums[(own_half * SHARERS + e / M) * QUERIES + own_query0 + i / TURNS * M + e % M] = sums[i];
        }

        // (own queries) · (all keys) · (own dimensions).
        for (uint s = 0u; s * SLAB_KEYS < key_end; ++s) {
            load_slab(false, slot, kv_head, split_begin, s * SLAB_KEYS, key_end);
            for (uint k = 0u; k < SLAB_KEYS; k += K) {
                coopmat<float16_t, gl_ScopeSubgroup, M, K, gl_MatrixUseA> high[QUERY_TILES], low[QUERY_TILES];
                [[unroll]] for (uint q = 0u; q < QUERY_TILES; ++q) {
                    uint at = (own_query0 + q * M) * STRIDE + (s * SLAB_KEYS + k) / 4u;
                    coopMatLoad(high[q], halves, at, STRIDE, gl_CooperativeMatrixLayoutRowMajor);
                    if (PARTS == 2u) coopMatLoad(low[q], halves, at + QUERIES * STRIDE, STRIDE, gl_CooperativeMatrixLayoutRowMajor);
                }
                [[unroll]] for (uint d = 0u; d < DIM_TILES; ++d) {
                    coopmat<float16_t, gl_ScopeSubgroup, K, N, gl_MatrixUseB> values;
                    coopMatLoad(values, slab, k * SLAB_STRIDE + (own_dim0 + d * N) / 4u, SLAB_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
                    [[unroll]] for (uint q = 0u; q < QUERY_TILES; ++q) {
                        uint i = q * DIM_TILES + d;
                        out_acc[i] = coopMatMulAdd(high[q], values, out_acc[i]);
                        if (PARTS == 2u) out_acc[i] = coopMatMulAdd(low[q], values, out_acc[i]);
                    }
                }
            }
        }
        barrier();
        for (uint q = id; q < QUERIES; q += n_threads) {
            if (limit_of[q] < 0) continue;
            precise float total = 0.0;
            for (uint i = 0u; i < 2u * SHARERS; ++i) total += part_sums[i * QUERIES + q];
            total_of[q] = int(first_bad[0]) <= limit_of[q] ? uintBitsToFloat(0x7fc00000u) : total;
        }
    }
    barrier();

    [[unroll]] for (uint i = 0u; i < QUERY_TILES * DIM_TILES; ++i) {
        coopMatStore(out_acc[i], results, own_results, N, gl_CooperativeMatrixLayoutRowMajor);
        barrier();
        for (uint e = lane; e < M * N; e += LANES) {
            uint base = partials_of(row0, kv_head, own_query0 + i / DIM_TILES * M + e / N);
            if (base == kNobody) continue;
            partials[base + own_dim0 + i % DIM_TILES * N + e % N] = results[own_results + e] / WEIGHT_SCALE; // exact
        }
        barrier();
    }
    for (uint q = id; q < QUERIES; q += n_threads) {
        uint base = partials_of(row0, kv_head, q);
        if (base == kNobody) continue;
        partials[base + HEAD_DIM] = unordered(largest_of[q]);
        partials[base + HEAD_DIM + 1u] = total_of[q];
    }
}
