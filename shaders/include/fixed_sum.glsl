// Sums of 64 bits as uvec2(low, high), for devices without 64-bit integers.

uvec2 add64(uvec2 a, uvec2 b) {
    uint low = a.x + b.x;
    return uvec2(low, a.y + b.y + (low < a.x ? 1u : 0u));
}
uvec2 sub64(uvec2 a, uvec2 b) {
    return uvec2(a.x - b.x, a.y - b.y - (a.x < b.x ? 1u : 0u));
}
bool less64(uvec2 a, uvec2 b) {
    return a.y < b.y || (a.y == b.y && a.x < b.x);
}
uvec2 mul32(uint a, uint b) {
    uint high, low;
    umulExtended(a, b, high, low);
    return uvec2(low, high);
}
// ⌊a / b⌋, below 2^30.
uint div64(uvec2 a, uint b) {
    uint quotient = 0u;
    for (uint bit = 1u << 29; bit != 0u; bit >>= 1)
        if (!less64(a, mul32(quotient | bit, b))) quotient |= bit;
    return quotient;
}
// ⌈total · fraction⌉ for total < 2^62 and a fraction in [0, 1), which counts in steps of 2^-32.
uvec2 share64(uvec2 total, float fraction) {
    uint steps = uint(fraction * 4294967296.0);
    uvec2 low = mul32(total.x, steps);
    uvec2 product = add64(mul32(total.y, steps), uvec2(low.y, 0u)); // without its lowest 32 bits
    return low.x == 0u ? product : add64(product, uvec2(1u, 0u));
}
