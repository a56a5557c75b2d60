// Philox4x32-10 and the exponential variates made from it.
#include "shared/philox.h"

uvec4 philox(uvec4 counter, uvec2 key) {
    for (uint i = 0u; i < 10u; ++i) {
        uint high0, low0, high1, low1;
        umulExtended(kPhiloxM0, counter.x, high0, low0);
        umulExtended(kPhiloxM1, counter.z, high1, low1);
        counter = uvec4(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
        key += uvec2(kPhiloxW0, kPhiloxW1);
    }
    return counter;
}

// Uniform in [0, 1) with 24 bits: u · q < p always holds for p = q > 0.
float uniform01(uint r) {
    return float(r >> 8) * (1.0 / 16777216.0);
}

// E = -log(1 - x) with x = (r + 0.5) · 2^-32: standard exponential, accurate relatively at both ends.
// Below a half by the atanh series with s = x / (2 - x), s ≤ 1/3: the first term left out is below 2e-8 relative.
float exponential(uint r) {
    if (r < 0x80000000u) {
        precise float x = (float(r) + 0.5) * (1.0 / 4294967296.0);
        precise float s = x / (2.0 - x);
        precise float s2 = s * s;
        precise float series = 1.0 / 15.0;
        series = fma(series, s2, 1.0 / 13.0);
        series = fma(series, s2, 1.0 / 11.0);
        series = fma(series, s2, 1.0 / 9.0);
        series = fma(series, s2, 1.0 / 7.0);
        series = fma(series, s2, 1.0 / 5.0);
        series = fma(series, s2, 1.0 / 3.0);
        series = fma(series, s2, 1.0);
        return 2.0 * s * series;
    }
    return -log((float(~r) + 0.5) * (1.0 / 4294967296.0));
}

// What the largest of which is drawn from softmax(z): Gumbel-max, Maddison et al. 2014, equation 2; -log E is the noise.
float gumbel_key(float z, uint r) {
    precise float key = z - log(exponential(r));
    return key;
}
