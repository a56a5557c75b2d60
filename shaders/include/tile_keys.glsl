// What a lane knows of its key of a tile, told to the lanes of its team: where the key's K and V begin, their scales, and what each
// query weighs it with. Key t of the tile is that of lane t * SHARE. By shuffles a lane is asked when something is needed; through
// shared memory keys are told with one barrier and weights with another, where asking would take one for each key and value. Include
// after reduce.glsl and cached_pairs.glsl. TILE, SHARE, QUERIES, and where the macros are used lane, own_key and first_pair, as in
// attention.comp.

#ifdef SUBGROUP
#define TELL_KEYS(k, v, k_scales, v_scales)
#define TELL_WEIGHTS(weights)
#define OF_KEY(own, what, t) lane_broadcast(own, (t) * SHARE)
#define WEIGHT_OF_KEY(weights, query, t) lane_broadcast(weights[query], (t) * SHARE)
// The scale of the block that the lane's pairs lie in.
#define SCALE_OF_KEY(scales, what, t, scale)                                                                           \
    float scale = lane_broadcast(scales[0], (t) * SHARE);                                                              \
    [[unroll]] for (uint b = 1u; b < BLOCKS; ++b) {                                                                    \
        float other = lane_broadcast(scales[b], (t) * SHARE);                                                          \
        if (b == first_pair / (kCacheBlock / 2u)) scale = other;                                                       \
    }
#else
const uint kToldK = 0u, kToldV = 1u, kToldKScale = 2u, kToldVScale = 2u + BLOCKS, kTold = 2u + 2u * BLOCKS;
// Keys take turns with two halves: V's are read after the weights were told, and no barrier lies before the next tile's are written.
// Weights need one half: the next tile's keys are told between.
shared uint told_keys[2u * kTold * TEAMS * TILE];  // (half, what, team, key)
shared float told_weights[QUERIES * TEAMS * TILE]; // (query, team, key)
uint told_half = 0u; // 0 or 1

uint told_at(uint what, uint t) { return ((told_half * kTold + what) * TEAMS + team_index()) * TILE + t; }
#define TELL_KEYS(k, v, k_scales, v_scales)                                                                            \
    told_half = 1u - told_half;                                                                                        \
    if (lane % SHARE == 0u) {                                                                                          \
        told_keys[told_at(kToldK, own_key)] = k;                                                                       \
        told_keys[told_at(kToldV, own_key)] = v;                                                                       \
        if (CACHE_TYPE == kCacheQ8) {                                                                                  \
            [[unroll]] for (uint b = 0u; b < BLOCKS; ++b) {                                                            \
                told_keys[told_at(kToldKScale + b, own_key)] = floatBitsToUint(k_scales[b]);                           \
                told_keys[told_at(kToldVScale + b, own_key)] = floatBitsToUint(v_scales[b]);                           \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    barrier();
#define TELL_WEIGHTS(weights)                                                                                          \
    if (lane % SHARE == 0u) {                                                                                          \
        [[unroll]] for (uint h = 0u; h < QUERIES; ++h) told_weights[(h * TEAMS + team_index()) * TILE + own_key] = weights[h]; \
    }                                                                                                                  \
    barrier();
#define OF_KEY(own, what, t) told_keys[told_at(what, t)]
#define WEIGHT_OF_KEY(weights, query, t) told_weights[((query) * TEAMS + team_index()) * TILE + (t)]
#define SCALE_OF_KEY(scales, what, t, scale)                                                                           \
    float scale = uintBitsToFloat(told_keys[told_at(what + first_pair / (kCacheBlock / 2u), t)]);
#endif
