// matmul on matrix units (GL_KHR_cooperative_matrix): weights and activations as sums of f16, products summed in f32. Four
// subgroups share a tile of rows and outputs, each takes a quarter, slab by slab of k through shared memory; the next slab is on
// its way from memory meanwhile. Sums run over k in order whatever the tile, so its shape changes no bit. Grid as matmul's. Built
// by hand: shaders/README.md.
//
// Errors. With two PARTS a product of f32 x and w comes out as good as f32 arithmetic (unit 2^-24) makes a sum of hundreds of
// them, which the tests hold every other prompt kernel to; one f16 rounding (2^-12) is a thousand times coarser. So
//   x = high + low, rounded by at most 2^-22 (split_halves), multiplied in two steps;
//   w of f16 and bf16 is one half: bf16's 8 bits fit, and 2^6 · w keeps small ones normal. f16 is taken as it lies;
//   w of other formats is high + low like x (11 bits times 6 times up to 8 do not fit), without the product of the lows,
//   which is below 2^-22: three steps.
// With one part all that follows a high is left out.
// Weights of 2^10 and more would overflow to infinity, and the outputs with them; trained ones are below 2^7.
#version 450
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "shared/matmul_args.h"
#include "shared/split_halves_args.h"
#include "shared/weight_format.h"

layout(local_size_x_id = 0) in; // four subgroups
layout(constant_id = 1) const uint WEIGHT_LAYOUT = kFormatBf16;
layout(constant_id = 2) const uint ADD = 0;
layout(constant_id = 3) const uint M = 16; // rows, outputs and k of the device's tile: 8 or 16
layout(constant_id = 4) const uint N = 16;
layout(constant_id = 5) const uint K = 16;
layout(constant_id = 6) const uint PARTS = 2; // of x; 1 halves the work and rounds x to f16
layout(constant_id = 7) const uint OWN_ROWS = 32; // of a subgroup: multiples of M and N, of which
layout(constant_id = 8) const uint OWN_OUTS = 64; // matrix_shared_bytes fit into shared memory
layout(constant_id = 9) const uint BLOCKS = 1;    // of kHalvesBlock k in a slab
#define WEIGHT_BINDING kMatmulWeight
#include "include/weight.glsl"
#include "include/halves.glsl"

layout(push_constant) uniform Push { MatmulArgs args; };
layout(std430, binding = kMatmulX) readonly buffer X { uvec4 x[]; }; // rows of split_halves
layout(std430, binding = kMatmulY) buffer Y { float y[]; };

const uint W_PARTS = FORMAT == kFormatF16 || FORMAT == kFormatBf16 ? 1u : PARTS;
const uint ROWS = 2u * OWN_ROWS;
const uint OUTS = 2u * OWN_OUTS;
const uint DEPTH = BLOCKS * kHalvesBlock; // k per slab
const uint STRIDE = MATRIX_STRIDE(BLOCKS);
const uint EIGHTS = DEPTH / 8u;
const float W_SCALE = FORMAT == kFormatF16 ? 1.0 : 64.0;

shared f16vec4 x_slab[PARTS * ROWS * STRIDE];   // (part, row, k)
shared f16vec4 w_slab[W_PARTS * OUTS * STRIDE]; // (part, output, k)
shared float results[4u * M * N];               // (subgroup, row, output)

// A slab is so many items, which invocations take in turns: 8 k of a part of a row of x; OCTETS of a step of a row of weights.
const uint THREADS = gl_WorkGroupSize.x;
const uint LANES = THREADS / 4u; // of a subgroup
const uint STEPS = 4u * BLOCKS / kOctets; // of a weight row
const uint OCTETS = kOctets == 1u ? 1u : 2u;
const uint X_ITEMS = ROWS * PARTS * EIGHTS;
const uint W_ITEMS = OUTS * EIGHTS / OCTETS;
const uint X_TURNS = (X_ITEMS + THREADS - 1u) / THREADS;
const uint W_TURNS = (W_ITEMS + THREADS - 1u) / THREADS;
// An invocation's items of the next slab, as they come from memory: nobody waits for them before store_slab.
uvec4 next_x[X_TURNS];
RawStep next_w[W_TURNS];

uint item_of(uint turn) { return turn * THREADS + gl_LocalInvocationID.x; }
uint x_row(uint item) { return item / (EIGHTS * PARTS); }
uint x_part(uint item) { return item / EIGHTS % PARTS; }
uint w_out(uint item) { return kOctets == 1u ? item / STEPS : item % OUTS; }
uint w_step(uint item, uint step0) { return step0 + (kOctets == 1u ? item % STEPS : item / (OUTS * (kOctets / OCTETS))); }
uint w_octet(uint item) { return kOctets == 1u ? 0u : item / OUTS * OCTETS % kOctets; }

// Instead of what lies past the last row, output, step or vector of x, the last one is read; x is 0 from the last step to the end of
// its block, and later blocks of the slab are not multiplied.
void load_slab(uint step0, uint x_stride, uint part_stride) {
    uint row0 = gl_WorkGroupID.x * ROWS, out0 = gl_WorkGroupID.y * OUTS, first = x_of_a(step0, 0u) / 2u;
    [[unroll]] for (uint turn = 0u; turn < X_TURNS; ++turn) {
        uint item = item_of(turn), row = min(row0 + x_row(item), args.n_rows - 1u);
        next_x[turn] = x[row * x_stride + x_part(item) * part_stride + min(first + item % EIGHTS, part_stride - 1u)];
    }
    [[unroll]] for (uint turn = 0u; turn < W_TURNS; ++turn) {
        uint item = item_of(turn), row = min(out0 + w_out(item), args.n_out - 1u);
        next_w[turn] = load_raw_step(row_begin(row, args.k_steps), min(w_step(item, step0), args.k_steps - 1u), args.k_steps);
    }
}

void store_w(uint o, uint k, vec4 four) {
    precise vec4 scaled = four * W_SCALE;
    f16vec4 high, low;
    split_into_halves(scaled, high, low);
    w_slab[o * STRIDE + k / 4u] = high;
    if (W_PARTS == 2u) w_slab[(OUTS + o) * STRIDE + k / 4u] = low;
}

void store_octet(uint o, WeightStep w, uint step, uint octet, uint step0) {
    uint at_a = 4u * (x_of_a(step, octet) - x_of_a(step0, 0u)), at_b = 4u * (x_of_b(step, octet) - x_of_a(step0, 0u));
    if (FORMAT == kFormatF16) {
        w_slab[o * STRIDE + at_a / 4u] = halves_of(w.low.x, w.low.y);
        w_slab[o * STRIDE + at_b / 4u] = halves_of(w.low.z, w.low.w);
        return;
    }
    vec4 a, b;
    octet_weights(w, octet, a, b);
    store_w(o, at_a, a);
    store_w(o, at_b, b);
}

void store_slab(uint step0) {
    [[unroll]] for (uint turn = 0u; turn < X_TURNS; ++turn) {
        uint item = item_of(turn), at = (x_part(item) * ROWS + x_row(item)) * STRIDE + 2u * (item % EIGHTS);
        if (item < X_ITEMS) {
            x_slab[at] = halves_of(next_x[turn].x, next_x[turn].y);
            x_slab[at + 1u] = halves_of(next_x[turn].z, next_x[turn].w);
        }
    }
    [[unroll]] for (uint turn = 0u; turn < W_TURNS; ++turn) {
        uint item = item_of(turn), step = w_step(item, step0);
        if (item < W_ITEMS) {
            WeightStep w = scaled_step(next_w[turn], step);
            [[unroll]] for (uint j = 0u; j < OCTETS; ++j) store_octet(w_out(item), w, step, w_octet(item) + j, step0);
        }
    }
}

void main() {
    uint row0 = gl_WorkGroupID.x * ROWS, out0 = gl_WorkGroupID.y * OUTS;
    uint own_row0 = gl_SubgroupID % 2u * OWN_ROWS, own_out0 = gl_SubgroupID / 2u * OWN_OUTS;
    uint k_padded = 8u * kOctets * args.k_steps;
    uint x_stride = halves_vectors(k_padded), part_stride = halves_width(k_padded) / 8u;

    coopmat<float, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator> acc[(OWN_ROWS / M) * (OWN_OUTS / N)];
    [[unroll]] for (uint i = 0u; i < (OWN_ROWS / M) * (OWN_OUTS / N); ++i)
        acc[i] = coopmat<float, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator>(0.0);

    load_slab(0u, x_stride, part_stride);
    for (uint step0 = 0u; step0 < args.k_steps; step0 += STEPS) {
        store_slab(step0);
        barrier();
        if (step0 + STEPS < args.k_steps) load_slab(step0 + STEPS, x_stride, part_stride);
        if (row0 + own_row0 < args.n_rows) {
            uint depth = min(DEPTH, 8u * (part_stride - x_of_a(step0, 0u) / 2u));
            for (uint k = 0u; k < depth; k += K) {
                coopmat<float16_t, gl_ScopeSubgroup, M, K, gl_MatrixUseA> high[OWN_ROWS / M], low[OWN_ROWS / M];
                [[unroll]] for (uint r = 0u; r < OWN_ROWS / M; ++r) {
                    uint at = (own_row0 + r * M) * STRIDE + k / 4u;
                    coopMatLoad(high[r], x_slab, at, STRIDE, gl_CooperativeMatrixLayoutRowMajor);
                    if (PARTS == 2u) coopMatLoad(low[r], x_slab, at + ROWS * STRIDE, STRIDE, gl_CooperativeMatrixLayoutRowMajor);
                }
                [[unroll]] for (uint o = 0u; o < OWN_OUTS / N; ++o) {
                    uint at = (own_out0 + o * N) * STRIDE + k / 4u;
                    coopmat<float16_t, gl_ScopeSubgroup, K, N, gl_MatrixUseB> w, w_low;
                    coopMatLoad(w, w_slab, at, STRIDE, gl_CooperativeMatrixLayoutColumnMajor);
                    if (W_PARTS == 2u) coopMatLoad(w_low, w_slab, at + OUTS * STRIDE, STRIDE, gl_CooperativeMatrixLayoutColumnMajor);
                    [[unroll]] for (uint r = 0u; r < OWN_ROWS / M; ++r) {
                        uint i = r * (OWN_OUTS / N) + o;
                        acc[i] = coopMatMulAdd(high[r], w, acc[i]);
                        if (PARTS == 2u) acc[i] = coopMatMulAdd(low[r], w, acc[i]);
                        if (W_PARTS == 2u) acc[i] = coopMatMulAdd(high[r], w_low, acc[i]);
                    }
                }
            }
        }
        barrier();
    }

    // A tile at a time through shared memory: where an invocation's elements lie is the device's secret.
    uint own_results = gl_SubgroupID * (M * N);
    [[unroll]] for (uint r = 0u; r < OWN_ROWS / M; ++r) {
        [[unroll]] for (uint o = 0u; o < OWN_OUTS / N; ++o) {
            coopMatStore(acc[r * (OWN_OUTS / N) + o], results, own_results, N, gl_CooperativeMatrixLayoutRowMajor);
            barrier();
            // As many turns as are known when the kernel is built: else the loops around would stay, and with them sums in memory.
            [[unroll]] for (uint turn = 0u; turn < (M * N + LANES - 1u) / LANES; ++turn) {
                uint e = turn * LANES + gl_SubgroupInvocationID;
                uint row = row0 + own_row0 + r * M + e / N, out_index = out0 + own_out0 + o * N + e % N;
                if (e >= M * N || row >= args.n_rows || out_index >= args.n_out) continue;
                float scale = uintBitsToFloat(x[row * x_stride + x_stride - 1u].x) / W_SCALE; // exact: powers of two
                uint at = row * args.y_stride + args.first_out + out_index;
                precise float sum = results[own_results + e] * scale;
                if (ADD != 0u) sum = y[at] + sum;
                y[at] = sum;
            }
            barrier();
        }
    }
}
