// One probability of a reduced row: softmax(logits / T)[id]. Target and draft go through this same expression, so that
// equal logits give equal bits.
#include "shared/slot_state.h"

float probability(float logit, float scale, VocabChoice row) {
    precise float z = logit * scale;
    precise float p = exp(z - row.max) / row.sum;
    return p;
}
