// The mat-vec family's member after an RMSNorm. BESTS 0: sums are written. Else, of a head whose logits nobody needs, only the best
// token of a workgroup's outputs for each row: 1, by its logit; 2, in slots with a temperature by logit / T plus coupled Gumbel noise.
// A constant, because llvmpipe runs through both sides of every branch, and the noise would be a third of a greedy head's time.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/normed_matvec_args.h"
#include "shared/round_rows.h"
#include "shared/weight_format.h"

layout(constant_id = 8) const uint PREPARED = 0;
layout(constant_id = 9) const uint BESTS = 0;
layout(push_constant) uniform Push { NormedMatvecArgs args; };
#define NORM
#include "include/dots.glsl"
#include "include/random.glsl"
#include "include/vocab.glsl"

layout(std430, binding = kMatvecY) writeonly buffer Y { float y[]; };
layout(std430, binding = kNormedBests) writeonly buffer Bests { BestToken bests[]; };
layout(std430, binding = kNormedState) readonly buffer State { SlotState state[]; };
layout(std430, binding = kNormedRows) readonly buffer Rows { Row rows[]; };

// (team, output, row), so that what follows with noise is a loop: compilers take long over 16 copies of it.
shared float sums[BESTS < 2u ? 1u : TEAMS * kTeamSums];

// The workgroup's best of a row. Must be reached by all of it.
void write_best(uint row, float best, uint best_id) {
    team_best(best, best_id);
    uint in_shard = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    if (gl_LocalInvocationIndex == 0u && in_shard * TEAMS * OUTS < args.n_out && row < args.n_rows)
        bests[row * args.n_bests + args.first_best + in_shard] = BestToken(best, best_id);
}

void main() {
#include "include/dot_rows.glsl"
    if (BESTS == 0u) {
        [[unroll]] for (int o = 0; o < kHeld; ++o) {
            [[unroll]] for (int r = 0; r < ROWS; ++r) {
                uint out_index = out0 + first_out + o;
                if (writes && out_index < args.n_out && row0 + r < args.n_rows)
                    y[(row0 + r) * args.y_stride + args.first_out + out_index] = acc[o * ROWS + r];
            }
        }
        return;
    }
    if (BESTS == 1u) {
        [[unroll]] for (int r = 0; r < ROWS; ++r) {
            float best = kLowest;
            uint best_id = kNoToken;
            [[unroll]] for (int o = 0; o < kHeld; ++o) {
                uint out_index = out0 + first_out + o;
                if (out_index < args.n_out) take_better(best, best_id, acc[o * ROWS + r], args.first_out + out_index);
            }
            write_best(row0 + r, best, best_id);
        }
        return;
    }
    uint own = team_index() * kTeamSums + uint(first_out * ROWS);
    if (writes) {
        [[unroll]] for (int i = 0; i < kHeld * ROWS; ++i) sums[own + i] = acc[i];
    }
    if (LANES > uint(OUTS)) team_barrier(); // lanes that hold the same output take it from one
    for (uint r = 0u; r < ROWS && row0 + r < args.n_rows; ++r) {
        uint row = row0 + r;
        uint at = args.first_row + row * args.row_step;
        float temperature = 0.0; // of rows that do not take part, too
        uint position = 0u;
        uvec2 seed = uvec2(0u);
        if (rows[at].live != 0u) {
            uint slot = rows[at].slot;
            temperature = state[slot].temperature;
            position = position_after(rows[at].position);
            seed = uvec2(state[slot].seed_low, state[slot].seed_high);
        }
        float best = kLowest;
        uint best_id = kNoToken;
        for (uint o = 0u; o < kHeld; ++o) {
            uint out_index = out0 + first_out + o;
            if (out_index >= args.n_out) continue;
            uint id = args.first_out + out_index;
            precise float key = sums[own + o * ROWS + r];
            if (temperature != 0.0) {
                precise float z = key * (1.0 / temperature);
                key = gumbel_key(z, philox(uvec4(position, kPurposeCoupled, 0u, id / 4u), seed)[id % 4u]);
            }
            take_better(best, best_id, key, id);
        }
        write_best(row, best, best_id);
    }
}
