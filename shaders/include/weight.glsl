// Eight weights from a padded row, as two vec4. Define FORMAT; the buffer is an array of uvec4 named weight.

vec4 unpack_low(uvec4 w, uint format) {
    if (format == kFormatBf16)
        return uintBitsToFloat(uvec4(w.x << 16, w.x & 0xffff0000u, w.y << 16, w.y & 0xffff0000u));
    return vec4(unpackHalf2x16(w.x), unpackHalf2x16(w.y));
}
vec4 unpack_high(uvec4 w, uint format) {
    if (format == kFormatBf16)
        return uintBitsToFloat(uvec4(w.z << 16, w.z & 0xffff0000u, w.w << 16, w.w & 0xffff0000u));
    return vec4(unpackHalf2x16(w.z), unpackHalf2x16(w.w));
}
