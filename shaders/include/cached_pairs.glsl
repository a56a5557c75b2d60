// A key's or value's vector out of the paged cache, in any of its types: the pairs of dimensions that a lane owns. Include after
// reduce.glsl, wide.glsl, q8_scale.glsl and the buffers k_cache and v_cache; HEAD_DIM, CACHE_TYPE, LANES as their owner has them.

const uint HEAD_PAIRS = HEAD_DIM / 2u;
const uint PAIRS = (HEAD_PAIRS + LANES - 1u) / LANES; // a lane owns pairs lane · PAIRS …; lanes beyond the head own none
const uint BLOCKS = HEAD_DIM < kCacheBlock ? 1u : HEAD_DIM / kCacheBlock; // scales of a key of a q8_0 cache; a lane's pairs share one

// Two codes of a word: the lower or the upper ones.
vec2 code_pair(uint word, uint upper) {
    int bits = int(word >> 16u * upper);
    return vec2(bitfieldExtract(bits, 0, 8), bitfieldExtract(bits, 8, 8));
}
// The scale of the block that the lane's pairs lie in, of the key that lane t loaded.
#define BROADCAST_SCALE(scales, t, scale)                                                                              \
    float scale = lane_broadcast(scales[0], t);                                                                        \
    [[unroll]] for (uint b = 1u; b < BLOCKS; ++b) {                                                                    \
        float other = lane_broadcast(scales[b], t);                                                                    \
        if (b == first_pair / (kCacheBlock / 2u)) scale = other;                                                       \
    }

// The pairs that `lane` owns of the head that begins at `element` of a cache.
#ifdef WIDE
#define LOAD_PAIRS(cache, element, pairs, at)                                                                          \
    [[unroll]] for (uint i = 0u; i < PAIRS; ++i) {                                                                     \
        uint pair = min(lane * PAIRS + i, HEAD_PAIRS - 1u);                                                            \
        if (CACHE_TYPE == kCacheF32) {                                                                                 \
            pairs[(at) + i] = uintBitsToFloat(unpackUint2x32(cache[(element) / 2u + pair]));                           \
        } else if (i % 2u == 0u || PAIRS % 2u != 0u) {                                                                 \
            uvec2 w = unpackUint2x32(cache[(element) / 4u + pair / 2u]);                                               \
            pairs[(at) + i] = unpackHalf2x16(PAIRS % 2u != 0u && pair % 2u != 0u ? w.y : w.x);                         \
            if (PAIRS % 2u == 0u) pairs[(at) + i + 1u] = unpackHalf2x16(w.y);                                          \
        }                                                                                                              \
    }
#define LOAD_CODES(cache, element, scale, pairs, at)                                                                   \
    [[unroll]] for (uint i = 0u; i < PAIRS; ++i) {                                                                     \
        uvec2 w = unpackUint2x32(cache[(element) / 8u + first_pair / 4u + i / 4u]);                                    \
        uint pair = (PAIRS < 4u ? first_pair + i : i) % 4u;                                                            \
        pairs[(at) + i] = scale * code_pair(pair < 2u ? w.x : w.y, pair % 2u);                                         \
    }
uint cache_word(uint64_t two, uint word) { return word % 2u == 0u ? unpackUint2x32(two).x : unpackUint2x32(two).y; }
#define SCALE_WORD(at, b) cache_word(k_cache[(at) / 2u + (b) / 2u], BLOCKS == 1u ? (at) : (b))
#else
#define LOAD_PAIRS(cache, element, pairs, at)                                                                          \
    [[unroll]] for (uint i = 0u; i < PAIRS; ++i) {                                                                     \
        uint pair = min(lane * PAIRS + i, HEAD_PAIRS - 1u);                                                            \
        if (CACHE_TYPE == kCacheF32)                                                                                   \
            pairs[(at) + i] = uintBitsToFloat(uvec2(cache[(element) + 2u * pair], cache[(element) + 2u * pair + 1u])); \
        else                                                                                                           \
            pairs[(at) + i] = unpackHalf2x16(cache[(element) / 2u + pair]);                                            \
    }
#define LOAD_CODES(cache, element, scale, pairs, at)                                                                   \
    [[unroll]] for (uint i = 0u; i < PAIRS; ++i) {                                                                     \
        uint w = cache[(element) / 4u + first_pair / 2u + i / 2u];                                                     \
        pairs[(at) + i] = scale * code_pair(w, (PAIRS < 2u ? first_pair : i) % 2u);                                    \
    }
#define SCALE_WORD(at, b) k_cache[(at) + (b)]
#endif
