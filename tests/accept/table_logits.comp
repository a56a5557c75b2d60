// Stands in for a model in tests of the acceptance, one that knows only the last token: the logits of a row are looked
// up by slot and token. Shapes are constants, so there are no arguments.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/row.h"

layout(local_size_x = 64) in;
layout(constant_id = 0) const uint N_ROWS = 1;
layout(constant_id = 1) const uint VOCAB = 8;
layout(constant_id = 2) const uint N_TABLES = 1;
layout(constant_id = 3) const uint ROW_FIRST = 0; // row r reads rows[ROW_FIRST + r · ROW_STEP]
layout(constant_id = 4) const uint ROW_STEP = 1;
layout(constant_id = 5) const uint LOGITS_FIRST = 0; // and writes row LOGITS_FIRST + r · LOGITS_STEP
layout(constant_id = 6) const uint LOGITS_STEP = 1;
layout(constant_id = 7) const uint N_TOKENS = 8; // rows of a table: what the last token may be

layout(std430, binding = 0) readonly buffer Tables { float tables[]; };   // (n_tables, n_tokens, vocab): by slot, last token
layout(std430, binding = 1) readonly buffer Rows { Row rows[]; };         // rows of a pass
layout(std430, binding = 2) writeonly buffer Logits { float logits[]; };  // rows of (vocab)

void main() {
    uint r = gl_GlobalInvocationID.x / VOCAB;
    uint i = gl_GlobalInvocationID.x % VOCAB;
    if (r >= N_ROWS) return;
    uint from = ROW_FIRST + r * ROW_STEP;
    if (rows[from].live == 0u) return;
    uint table = rows[from].slot % N_TABLES;
    logits[(LOGITS_FIRST + r * LOGITS_STEP) * VOCAB + i] = tables[(table * N_TOKENS + rows[from].token) * VOCAB + i];
}
