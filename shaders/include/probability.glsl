// One probability of a reduced row: softmax(logits / T)[id] over what its cut keeps, 0 for what that leaves out. Target
// and draft go through this same expression, so that equal logits give equal bits.
#include "shared/slot_state.h"

bool row_keeps(float logit, uint id, VocabChoice row) {
    return logit > row.cut_logit || (logit == row.cut_logit && id <= row.cut_last_id);
}

float probability(float logit, uint id, float scale, VocabChoice row) {
    precise float z = logit * scale;
    precise float p = exp(z - row.max) / row.sum;
    return row_keeps(logit, id, row) ? p : 0.0;
}
