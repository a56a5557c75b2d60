// One probability of a reduced row: softmax(logits / T)[id] over what its cut keeps, 0 for what that leaves out. Target
// and draft go through this same expression, so that equal logits give equal bits.
#include "include/cut.glsl"

float probability(float logit, uint id, float scale, VocabChoice row) {
    precise float z = logit * scale;
    precise float p = exp(z - row.max) / row.sum;
    return is_kept(logit, id, row.cut_logit, row.cut_last_id) ? p : 0.0;
}

// Whether something can be drawn with this probability, or weight: a finite number above 0. By its bits, because a compiler may
// take comparisons for those of numbers.
bool is_drawable(float p) {
    return floatBitsToUint(p) - 1u < 0x7f7fffffu;
}

// Whether the row's largest logit is a finite number. One of NaN, of -inf, or with +inf has no probabilities.
bool is_finite(VocabChoice row) {
    return (floatBitsToUint(row.max) & 0x7f800000u) != 0x7f800000u && row.max > kLowest;
}
