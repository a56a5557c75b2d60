// Best key of a set, lowest id among equals, at every level of the reduction. Include after include/reduce.glsl.

#include "include/cut.glsl"
#include "include/logit_quad.glsl"

// Which logits of a LOGIT_QUAD a cut keeps.
bvec4 kept_of(vec4 quad_logits, uint quad, uint end, Cut cut) {
    bvec4 kept;
    for (uint i = 0u; i < 4u; ++i) kept[i] = all(bvec2(quad + i < end, is_kept(quad_logits[i], quad + i, cut.logit, cut.last_id)));
    return kept;
}

// -inf keys never win against a real one; with nothing but -inf the lowest id stands.
void take_better(inout float best, inout uint best_id, float key, uint id) {
    if (key > best || (key == best && id < best_id)) {
        best = key;
        best_id = id;
    }
}

// All lanes receive the team's best.
void lane_best(inout float best, inout uint best_id) {
#define BEST_LEVEL(distance)                                                                                           \
    {                                                                                                                  \
        float other = lane_exchange(best, distance);                                                                   \
        uint other_id = lane_exchange(best_id, distance);                                                              \
        take_better(best, best_id, other, other_id);                                                                   \
    }
    LANE_TREE(BEST_LEVEL)
}

// … and all teams of the workgroup the workgroup's.
shared float best_keys[TEAMS];
shared uint best_ids[TEAMS];
void team_best(inout float best, inout uint best_id) {
    lane_best(best, best_id);
    if (TEAMS == 1u) return;
    if (lane_index() == 0u) {
        best_keys[team_index()] = best;
        best_ids[team_index()] = best_id;
    }
    barrier();
    for (uint t = 0u; t < TEAMS; ++t) take_better(best, best_id, best_keys[t], best_ids[t]);
    barrier();
}
