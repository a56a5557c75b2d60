// The mat-vec family's member for the first half of the feed-forward: RMSNorm, both projections, and SwiGLU of each pair
// (Shazeer 2020, equation 6). Even weight rows are gates, odd ones ups.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/matvec_args.h"
#include "shared/weight_format.h"
#include "include/swiglu.glsl"

layout(constant_id = 8) const uint PREPARED = 0;
layout(push_constant) uniform Push { MatvecArgs args; };
#define NORM
#define PAIRS_OUT
#include "include/dots.glsl"

layout(std430, binding = kMatvecY) writeonly buffer Y { float y[]; };

void emit_pair(uint out_index, uint row, float gate, float up) {
    y[row * args.y_stride + (args.first_out + out_index) / 2u] = swiglu(gate, up);
}

void main() {
#include "include/dot_rows.glsl"
}
