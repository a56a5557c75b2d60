// Numbers rounded to what f16 holds of them, by integers: of packing and unpacking, or converting there and back, drivers keep
// nothing (Mesa 25 for the second of a pair, Mesa 26 for f16 types), and what a half leaves over would be lost. Below f16's
// normal numbers more bits stay than f16 has; NaN and infinity stay, or become what gives NaN when subtracted.
vec4 rounded_to_half(vec4 v) {
    uvec4 bits = floatBitsToUint(v);
    return uintBitsToFloat((bits + 0xfffu + ((bits >> 13) & 1u)) & ~0x1fffu);
}
