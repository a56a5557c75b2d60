// 16, 8 and 4 bytes from a buffer, the same values in any of three ways. llvmpipe fetches lane by lane: from a storage buffer
// element by element, so with WIDE it is declared in 64-bit elements (shaderInt64), half as many; as a storage texel buffer
// (TEXELS) 16 bytes at once. Not as a uniform one: those are samplers there, and each fetch the call of a function.
// Declare a buffer with elements of WIDE_VEC, WIDE_PAIR or WIDE_WORD (half or a quarter of a WIDE_VEC), its texels with
// TEXEL_VECS, of which pairs are halves, or TEXEL_WORDS, and read element i of the buffer by FETCH_….
#ifndef WIDE_GLSL
#define WIDE_GLSL

#ifdef WIDE
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#include "shared/texels.h"
layout(constant_id = kTexelsConstant) const uint TEXELS = 0u;
#define WIDE_VEC u64vec2
#define WIDE_PAIR uint64_t
#define WIDE_WORD uint64_t
uvec4 wide_uvec4(u64vec2 v) { return uvec4(unpackUint2x32(v.x), unpackUint2x32(v.y)); }
uvec2 half_of(uvec4 v, uint i) { return (i & 1u) == 0u ? v.xy : v.zw; }
#define TEXEL_VECS(at_binding, texels) layout(binding = at_binding, rgba32ui) uniform readonly uimageBuffer texels;
#define TEXEL_WORDS(at_binding, texels) layout(binding = at_binding, r32ui) uniform readonly uimageBuffer texels;
#define FETCH_VEC(buf, texels, i) (TEXELS != 0u ? imageLoad(texels, int(i)) : wide_uvec4(buf[i]))
#define FETCH_PAIR(buf, texels, i) (TEXELS != 0u ? half_of(imageLoad(texels, int(i) / 2), i) : unpackUint2x32(buf[i]))
#define FETCH_WORD(buf, texels, i) (TEXELS != 0u ? imageLoad(texels, int(i)).x : buf[i])
#else
#define WIDE_VEC uvec4
#define WIDE_PAIR uvec2
#define WIDE_WORD uint
#define TEXEL_VECS(at_binding, texels)
#define TEXEL_WORDS(at_binding, texels)
#define FETCH_VEC(buf, texels, i) buf[i]
#define FETCH_PAIR(buf, texels, i) buf[i]
#define FETCH_WORD(buf, texels, i) buf[i]
#endif
#endif
