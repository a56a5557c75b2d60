// Logits in their order, for lists of the best: the largest first, equal ones by lowest id, those that are no numbers last.
// Include after include/reduce.glsl.
#include "shared/vocab_args.h"

// By its bits, because a compiler may take every value for a number.
bool is_number(float v) {
    return (floatBitsToUint(v) & 0x7fffffffu) <= 0x7f800000u;
}
// Larger logits have larger ranks, equal ones equal ranks; 0: no number.
uint rank_of(float logit) {
    uint bits = floatBitsToUint(logit);
    if (bits == 0x80000000u) bits = 0u; // -0 equals 0
    uint rank = (bits & 0x80000000u) != 0u ? ~bits : bits | 0x80000000u;
    return is_number(logit) ? rank : 0u;
}

// Where a list begins, and where one ends.
const uint kBeforeAll = 0xffffffffu; // no logit's rank
const uint kNoRank = 0u;             // with kNoToken: after every token

bool comes_after(uint rank, uint id, uint last_rank, uint last_id) {
    return rank < last_rank || (rank == last_rank && id > last_id);
}
void take_first(inout uint rank, inout uint id, uint other_rank, uint other_id) {
    if (other_rank > rank || (other_rank == rank && other_id < id)) {
        rank = other_rank;
        id = other_id;
    }
}
// All lanes receive the team's first.
void lane_first(inout uint rank, inout uint id) {
#define FIRST_LEVEL(distance)                                                                                          \
    {                                                                                                                  \
        uint other_rank = lane_exchange(rank, distance);                                                               \
        uint other_id = lane_exchange(id, distance);                                                                   \
        take_first(rank, id, other_rank, other_id);                                                                    \
    }
    LANE_TREE(FIRST_LEVEL)
}
