// The mat-vec family's plain member: sums are written, or added to what is there. Memory-bound on GPUs.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/matvec_args.h"
#include "shared/weight_format.h"

layout(constant_id = 8) const uint ADD = 0; // 1: y += instead of y =
layout(push_constant) uniform Push { MatvecArgs args; };
#include "include/dots.glsl"

layout(std430, binding = kMatvecY) buffer Y { float y[]; };

void main() {
#include "include/dot_rows.glsl"
    [[unroll]] for (int o = 0; o < kHeld; ++o) {
        [[unroll]] for (int r = 0; r < ROWS; ++r) {
            uint out_index = out0 + first_out + o;
            if (writes && out_index < args.n_out && row0 + r < args.n_rows) {
                uint at = (row0 + r) * args.y_stride + args.first_out + out_index;
                precise float sum = acc[o * ROWS + r];
                if (ADD != 0u) sum = y[at] + sum;
                y[at] = sum;
            }
        }
    }
}
