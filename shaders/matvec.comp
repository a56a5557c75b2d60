// The mat-vec family's plain member: sums are written, or added to what is there. Memory-bound on GPUs.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/matvec_args.h"
#include "shared/weight_format.h"

layout(constant_id = 8) const uint ADD = 0; // 1: y += instead of y =
layout(push_constant) uniform Push { MatvecArgs args; };
#include "include/dots.glsl"

layout(std430, binding = kMatvecY) buffer Y { float y[]; };

uint y_place(uint row, uint out_index) { return row * args.y_stride + args.first_out + out_index; }

void main() {
#include "include/dot_rows.glsl"
    // All that sums are added to is read before any is written: a load may not overtake a store to the same buffer.
    float before[kHeld * ROWS];
    if (ADD != 0u && writes) {
        [[unroll]] for (int o = 0; o < kHeld; ++o)
            [[unroll]] for (int r = 0; r < ROWS; ++r)
                before[o * ROWS + r] = y[y_place(min(row0 + r, args.n_rows - 1u), min(out0 + first_out + o, args.n_out - 1u))];
    }
    [[unroll]] for (int o = 0; o < kHeld; ++o) {
        [[unroll]] for (int r = 0; r < ROWS; ++r) {
            precise float sum = acc[o * ROWS + r];
            if (ADD != 0u) sum = before[o * ROWS + r] + sum;
            if (writes && out0 + first_out + o < args.n_out && row0 + r < args.n_rows) y[y_place(row0 + r, out0 + first_out + o)] = sum;
        }
    }
}
