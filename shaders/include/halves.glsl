// f32 as sums of two f16, for shaders on matrix units. What split_halves does for whole rows.
#include "include/rounded_to_half.glsl"

f16vec4 halves_of(uint a, uint b) { return f16vec4(unpackFloat2x16(a), unpackFloat2x16(b)); } // the bits as they are

// Both parts of what is already scaled so that neither is subnormal where it matters.
void split_into_halves(vec4 scaled, out f16vec4 high, out f16vec4 low) {
    vec4 rounded = rounded_to_half(scaled);
    precise vec4 rest = scaled - rounded;
    high = f16vec4(rounded);
    low = f16vec4(rest);
}
