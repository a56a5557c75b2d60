// 16 and 8 bytes from a buffer, the same values in any of three ways. llvmpipe fetches lane by lane: from a storage buffer
// element by element, so with WIDE it is declared in 64-bit elements (shaderInt64), half as many; as a texel buffer (TEXELS)
// 16 bytes at once, which its older versions do twice as fast, and its newer ones slower.
// Declare a buffer with elements of WIDE_VEC, WIDE_PAIR or WIDE_WORD (half or a quarter of a WIDE_VEC), its texels with
// TEXEL_BUFFER, and read element i of the buffer by FETCH_….
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
#define TEXEL_BUFFER(at_binding, texels) layout(binding = at_binding) uniform usamplerBuffer texels;
#define FETCH_VEC(buf, texels, i) (TEXELS != 0u ? texelFetch(texels, int(i)) : wide_uvec4(buf[i]))
#define FETCH_PAIR(buf, texels, i) (TEXELS != 0u ? texelFetch(texels, int(i)).xy : unpackUint2x32(buf[i]))
#define FETCH_WORD(buf, texels, i) (TEXELS != 0u ? texelFetch(texels, int(i)).x : buf[i])
#else
#define WIDE_VEC uvec4
#define WIDE_PAIR uvec2
#define WIDE_WORD uint
#define TEXEL_BUFFER(at_binding, texels)
#define FETCH_VEC(buf, texels, i) buf[i]
#define FETCH_PAIR(buf, texels, i) buf[i]
#define FETCH_WORD(buf, texels, i) buf[i]
#endif
#endif
