// f32 as sums of two f16, for shaders on matrix units. What split_halves does for whole rows.

f16vec4 halves_of(uint a, uint b) { return f16vec4(unpackFloat2x16(a), unpackFloat2x16(b)); } // the bits as they are

// Both parts of what is already scaled so that neither is subnormal where it matters.
void split_into_halves(vec4 scaled, out f16vec4 high, out f16vec4 low) {
    // Through bits: Mesa 26 takes f16 and back for nothing, and would leave no rest.
    uvec2 bits = uvec2(packHalf2x16(scaled.xy), packHalf2x16(scaled.zw));
    precise vec4 rest = scaled - vec4(unpackHalf2x16(bits.x), unpackHalf2x16(bits.y));
    high = halves_of(bits.x, bits.y);
    low = f16vec4(rest);
}
