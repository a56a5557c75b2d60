// 16 bytes from a buffer. With WIDE the buffer is declared in 64-bit elements (shaderInt64): llvmpipe fetches element by
// element and lane by lane, so half as many elements is half the work. The values are the same.
// Declare a buffer with elements of WIDE_VEC and read it through wide_uvec4(buffer[i]); WIDE_WORD is half or a quarter of one.

#ifdef WIDE
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#define WIDE_VEC u64vec2
#define WIDE_WORD uint64_t
uvec4 wide_uvec4(u64vec2 v) { return uvec4(unpackUint2x32(v.x), unpackUint2x32(v.y)); }
#else
#define WIDE_VEC uvec4
#define WIDE_WORD uint
uvec4 wide_uvec4(uvec4 v) { return v; }
#endif
