// Best key of a set, lowest id among equals, at every level of the reduction. Include after include/reduce.glsl.

const float kLowest = -3.402823466e38;

// -inf keys never win against a real one; with nothing but -inf the lowest id stands.
void take_better(inout float best, inout uint best_id, float key, uint id) {
    if (key > best || (key == best && id < best_id)) {
        best = key;
        best_id = id;
    }
}

// All lanes receive the team's best.
void lane_best(inout float best, inout uint best_id) {
    for (uint distance = LANES / 2u; distance > 0u; distance /= 2u) {
        float other = lane_exchange(best, distance);
        uint other_id = lane_exchange(best_id, distance);
        take_better(best, best_id, other, other_id);
    }
}
