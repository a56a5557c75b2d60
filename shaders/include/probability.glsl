// One probability of a reduced row: softmax(logits / T)[id] over what its cut keeps, 0 for what that leaves out. Target
// and draft go through this same expression, so that equal logits give equal bits.
#include "include/cut.glsl"

float probability(float logit, uint id, float scale, VocabChoice row) {
    precise float z = logit * scale;
    precise float p = exp(z - row.max) / row.sum;
    return is_kept(logit, id, row.cut_logit, row.cut_last_id) ? p : 0.0;
}
