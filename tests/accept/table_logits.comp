// Stands in for a model in tests of the acceptance: looks the logits of a row up by slot and token.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "table_logits_args.h"

layout(local_size_x = 64) in;

layout(push_constant) uniform Push { TableLogitsArgs args; };
layout(std430, binding = kTableTables) readonly buffer Tables { float tables[]; };
layout(std430, binding = kTableRows) readonly buffer Rows { Row rows[]; };
layout(std430, binding = kTableLogits) writeonly buffer Logits { float logits[]; };

void main() {
    uint r = gl_GlobalInvocationID.x / args.vocab;
    uint i = gl_GlobalInvocationID.x % args.vocab;
    if (r >= args.n_rows) return;
    uint from = args.row_first + r * args.row_step;
    if (rows[from].live == 0u) return;
    uint table = rows[from].slot % args.n_tables;
    logits[(args.logits_first + r * args.logits_step) * args.vocab + i] =
        tables[(table * args.vocab + rows[from].token) * args.vocab + i];
}
