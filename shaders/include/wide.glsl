// 16 and 8 bytes from a buffer. With WIDE the buffer is declared in 64-bit elements (shaderInt64): llvmpipe fetches element
// by element and lane by lane, so half as many elements is half the work. The values are the same.
// Declare a buffer with elements of WIDE_VEC or WIDE_PAIR and read it through wide_uvec4 or wide_uvec2; WIDE_WORD is half or
// a quarter of a WIDE_VEC.
#ifndef WIDE_GLSL
#define WIDE_GLSL

#ifdef WIDE
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#define WIDE_VEC u64vec2
#define WIDE_PAIR uint64_t
#define WIDE_WORD uint64_t
uvec4 wide_uvec4(u64vec2 v) { return uvec4(unpackUint2x32(v.x), unpackUint2x32(v.y)); }
uvec2 wide_uvec2(uint64_t v) { return unpackUint2x32(v); }
#else
#define WIDE_VEC uvec4
#define WIDE_PAIR uvec2
#define WIDE_WORD uint
uvec4 wide_uvec4(uvec4 v) { return v; }
uvec2 wide_uvec2(uvec2 v) { return v; }
#endif
#endif
