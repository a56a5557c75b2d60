// Rows of logits that reductions over a vocabulary may get wrong.
#pragma once

#include "reference/random.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace auspex {

inline const char* const kKinds[] = {"normal", "equal", "one huge", "ties", "a third banned", "all but one banned", "banned", "some NaN",
                                     "zeros of both signs", "extremes", "infinite", "all NaN", "descending", "ascending"};

inline std::vector<float> logits_of(size_t kind, uint32_t vocab, uint32_t seed) {
    reference::DataStream data(seed);
    std::vector<float> z(vocab);
    for (uint32_t i = 0; i < vocab; ++i) {
        const float x = data.normal();
        const uint32_t dice = data.below(12);
        switch (kind) {
        case 0: z[i] = 3 * x; break;
        case 1: z[i] = 2.5f; break;
        case 2: z[i] = i == vocab / 2 ? 100.0f : 0.1f * x; break;
        case 3: z[i] = std::round(2 * x) / 2; break;
        case 4: z[i] = dice < 4 ? -INFINITY : 4 * x; break;
        case 5: z[i] = i == vocab - 1 ? -7.0f : -INFINITY; break;
        case 6: z[i] = -INFINITY; break;
        case 7: z[i] = dice < 3 ? (dice == 0 ? -NAN : NAN) : 2 * x; break;
        case 8: z[i] = dice < 5 ? 0.0f : dice < 10 ? -0.0f : x; break;
        case 9: z[i] = dice == 0 ? 3e38f : dice == 1 ? -3e38f : 1e3f * x; break;
        case 10: z[i] = dice == 0 ? INFINITY : x; break;
        case 11: z[i] = i % 2 ? NAN : -NAN; break;
        case 12: z[i] = -0.01f * float(i); break;
        default: z[i] = 0.01f * float(i); break;
        }
    }
    return z;
}

} // namespace auspex
