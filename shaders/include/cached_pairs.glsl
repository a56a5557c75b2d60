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

// LOAD_…: the pairs that `lane` owns of the head that begins at `element` of a cache, k or v.
#ifdef WIDE
TEXEL_VECS(kTexelVecs + kAttentionK, k_cache_texels)
TEXEL_VECS(kTexelVecs + kAttentionV, v_cache_texels)
#define FETCH_TWO(buf, texels, i)                                                                                      \
    (TEXELS != 0u ? imageLoad(texels, int(i)) : wide_uvec4(u64vec2(buf[2u * (i)], buf[2u * (i) + 1u])))
uvec4 k_vec(uint at) { return FETCH_TWO(k_cache, k_cache_texels, at); }
uvec4 v_vec(uint at) { return FETCH_TWO(v_cache, v_cache_texels, at); }
uvec2 k_pair(uint at) { return FETCH_PAIR(k_cache, k_cache_texels, at); }
uvec2 v_pair(uint at) { return FETCH_PAIR(v_cache, v_cache_texels, at); }
#define LOAD_PAIRS(cache, element, pairs, at) /* 2, 4 or 8 of them, all in the head */                                 \
    if (CACHE_TYPE == kCacheF32) {                                                                                     \
        [[unroll]] for (uint i = 0u; i < PAIRS; i += 2u) {                                                             \
            uvec4 w = cache##_vec((element) / 4u + (lane * PAIRS + i) / 2u);                                           \
            pairs[(at) + i] = uintBitsToFloat(w.xy);                                                                   \
            pairs[(at) + i + 1u] = uintBitsToFloat(w.zw);                                                              \
        }                                                                                                              \
    } else if (PAIRS % 4u == 0u) {                                                                                     \
        [[unroll]] for (uint i = 0u; i < PAIRS; i += 4u) { /* written out: see FOR_TILE */                             \
            uvec4 w = cache##_vec((element) / 8u + (lane * PAIRS + i) / 4u);                                           \
            pairs[(at) + i] = unpackHalf2x16(w.x);                                                                     \
            pairs[(at) + i + 1u] = unpackHalf2x16(w.y);                                                                \
            pairs[(at) + i + 2u] = unpackHalf2x16(w.z);                                                                \
            pairs[(at) + i + 3u] = unpackHalf2x16(w.w);                                                                \
        }                                                                                                              \
    } else {                                                                                                           \
        uvec2 w = cache##_pair((element) / 4u + lane * PAIRS / 2u);                                                    \
        pairs[at] = unpackHalf2x16(w.x);                                                                               \
        pairs[(at) + 1u] = unpackHalf2x16(w.y);                                                                        \
    }
#define LOAD_CODES(cache, element, scale, pairs, at)                                                                   \
    [[unroll]] for (uint i = 0u; i < PAIRS; ++i) {                                                                     \
        uvec2 w = cache##_pair((element) / 8u + first_pair / 4u + i / 4u);                                             \
        uint pair = (PAIRS < 4u ? first_pair + i : i) % 4u;                                                            \
        pairs[(at) + i] = scale * code_pair(pair < 2u ? w.x : w.y, pair % 2u);                                         \
    }
uint cache_word(uvec2 two, uint word) { return word % 2u == 0u ? two.x : two.y; }
#define SCALE_WORD(at, b) cache_word(k_pair((at) / 2u + (b) / 2u), BLOCKS == 1u ? (at) : (b))
#else
#define LOAD_PAIRS(cache, element, pairs, at)                                                                          \
    [[unroll]] for (uint i = 0u; i < PAIRS; ++i) {                                                                     \
        uint pair = min(lane * PAIRS + i, HEAD_PAIRS - 1u);                                                            \
        if (CACHE_TYPE == kCacheF32)                                                                                   \
            pairs[(at) + i] =                                                                                          \
                uintBitsToFloat(uvec2(cache##_cache[(element) + 2u * pair], cache##_cache[(element) + 2u * pair + 1u]));\
        else                                                                                                           \
            pairs[(at) + i] = unpackHalf2x16(cache##_cache[(element) / 2u + pair]);                                    \
    }
#define LOAD_CODES(cache, element, scale, pairs, at)                                                                   \
    [[unroll]] for (uint i = 0u; i < PAIRS; ++i) {                                                                     \
        uint w = cache##_cache[(element) / 4u + first_pair / 2u + i / 2u];                                             \
        pairs[(at) + i] = scale * code_pair(w, (PAIRS < 2u ? first_pair : i) % 2u);                                    \
    }
#define SCALE_WORD(at, b) k_cache[(at) + (b)]
#endif
