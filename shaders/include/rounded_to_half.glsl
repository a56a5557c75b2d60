// Numbers rounded to what f16 holds of them, by integers: of packing and unpacking, or converting there and back, drivers keep
// nothing (Mesa 25 for the second of a pair, Mesa 26 for f16 types), and what a half leaves over would be lost. Below f16's
// normal numbers more bits stay than f16 has; NaN and infinity stay: the largest NaN, which is the one that NVIDIA's devices make, must
// not round on to zero.
vec4 rounded_to_half(vec4 v) {
    uvec4 bits = floatBitsToUint(v), magnitude = min(bits & 0x7fffffffu, uvec4(0x7fffe000u));
    return uintBitsToFloat((bits & 0x80000000u) | ((magnitude + 0xfffu + ((magnitude >> 13) & 1u)) & ~0x1fffu));
}
