// Stands in for the truncation in tests of the acceptance: the cut of a row is looked up by slot and token, as
// table_logits looks up its logits.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/slot_state.h"

layout(local_size_x = 64) in;
layout(constant_id = 0) const uint N_ROWS = 1;
layout(constant_id = 1) const uint VOCAB = 8;
layout(constant_id = 2) const uint N_TABLES = 1;
layout(constant_id = 3) const uint ROW_FIRST = 0; // row r reads rows[ROW_FIRST + r · ROW_STEP]
layout(constant_id = 4) const uint ROW_STEP = 1;

layout(std430, binding = 0) readonly buffer Tables { Cut tables[]; };  // (n_tables, vocab): by slot, last token
layout(std430, binding = 1) readonly buffer Rows { Row rows[]; };      // rows of a pass
layout(std430, binding = 2) writeonly buffer Cuts { Cut cuts[]; };     // (n_rows)

void main() {
    uint r = gl_GlobalInvocationID.x;
    if (r >= N_ROWS) return;
    uint from = ROW_FIRST + r * ROW_STEP;
    if (rows[from].live != 0u) cuts[r] = tables[rows[from].slot % N_TABLES * VOCAB + rows[from].token];
}
