// Scales of a q4_k block by search: (1) each sub-block is fitted alone, rounding on a grid of steps and solving for the
// best scale and minimum of each rounding; (2) these are rounded to the block's shared units, trying the neighbours;
// (3) the units are solved for again, and (2) repeated as long as that helps. The measure is the squared error.
#include "tensor/quant_encode_k.h"
#include "tensor/quant_search.h"

#include <cstring>

namespace auspex {
namespace {

// x ≈ d·scale·q − dmin·min, q 0…15; scale and min are 0…63, per sub-block of 32.
constexpr int kNSubs = 8, kSubSize = 32;

struct Affine {
    float scale = 0, min = 0; // x ≈ scale·q − min, neither is negative
};

// The best scale and min for x by the rounding that `origin` and `inverse` give, and how much of Σx² they explain.
float explain(const float* x, float sum_x, float origin, float inverse, Affine& best) {
    Float4 sum_q = four(0), sum_qq = four(0), sum_xq = four(0);
    for (int i = 0; i < kSubSize; i += 4) {
        const Float4 v = load4(x + i), rounded = nearest(clamped((v - four(origin)) * four(inverse), 0.0f, 15.0f));
        sum_q += rounded;
        sum_qq += rounded * rounded;
        sum_xq += v * rounded;
    }
    const float q = total(sum_q), qq = total(sum_qq), xq = total(sum_xq);
    const float spread = kSubSize * qq - q * q;
    if (qq <= 0) return 0;
    if (spread > 0) {
        const float covariance = kSubSize * xq - sum_x * q;
        best.scale = covariance / spread;
        best.min = (best.scale * q - sum_x) / kSubSize;
        if (best.scale > 0 && best.min >= 0) return (covariance * covariance / spread + sum_x * sum_x) / kSubSize;
    }
    best = {std::max(xq / qq, 0.0f), 0.0f}; // the line that goes through zero
    return best.scale * xq;
}

Affine fit(const float* x) {
    float low = 0, high = x[0];
    Float4 sum = four(0);
    for (int i = 0; i < kSubSize; ++i) {
        low = std::min(low, x[i]);
        high = std::max(high, x[i]);
    }
    for (int i = 0; i < kSubSize; i += 4)
        sum += load4(x + i);
    const float range = high - low, sum_x = total(sum);
    if (range < kLeastUnit) return {0.0f, std::max(-sum_x / kSubSize, 0.0f)};
    Affine best{range / 15, -low};
    float most = -1;
    for (int step = 0; step < 14; ++step) {
        Affine candidate;
        const float explained = explain(x, sum_x, low, (14.1f + 0.2f * static_cast<float>(step)) / range, candidate);
        if (explained > most) {
            most = explained;
            best = candidate;
        }
    }
    return best;
}

struct Codes {
    float d = 0, dmin = 0; // as the file holds them
    float scale[kNSubs], min[kNSubs];
    float q[kSuperBlock];
    float error = 0;
};

// Σ(x − (scale·q − min))² with the best q, which it stores where `q` is not null.
float round_sub(const float* x, float scale, float min, float* q) {
    const float inverse = scale > 0 ? 1.0f / scale : 0.0f;
    Float4 sum = four(0);
    for (int i = 0; i < kSubSize; i += 4) {
        const Float4 raised = load4(x + i) + four(min);
        const Float4 rounded = nearest(clamped(raised * four(inverse), 0.0f, 15.0f));
        const Float4 miss = raised - four(scale) * rounded;
        sum += miss * miss;
        if (q) store4(q + i, rounded);
    }
    return total(sum);
}

// Integer scales and minima near those wished for, in the units d and dmin.
void round_block(const float* x, const Affine* wish, Codes& codes) {
    codes.error = 0;
    for (int sub = 0; sub < kNSubs; ++sub, x += kSubSize) {
        const float near_scale = nearest(clamped(wish[sub].scale / codes.d, 0.0f, 63.0f));
        const float near_min = codes.dmin > 0 ? nearest(clamped(wish[sub].min / codes.dmin, 0.0f, 63.0f)) : 0.0f;
        float least = -1;
        for (int trial = 0; trial < 9; ++trial) {
            const float scale = near_scale + static_cast<float>(trial / 3 - 1);
            const float min = near_min + static_cast<float>(trial % 3 - 1);
            if (scale < 0 || scale > 63 || min < 0 || min > 63) continue;
            const float error = round_sub(x, codes.d * scale, codes.dmin * min, nullptr);
            if (least >= 0 && error >= least) continue;
            least = error;
            codes.scale[sub] = scale;
            codes.min[sub] = min;
        }
        codes.error += round_sub(x, codes.d * codes.scale[sub], codes.dmin * codes.min[sub], codes.q + sub * kSubSize);
    }
}

// The units that suit the integers best; false when they are not determined.
bool solve_units(const float* x, const Codes& codes, float& d, float& dmin) {
    double aa = 0, ab = 0, bb = 0, xa = 0, xb = 0; // x ≈ d·a − dmin·b
    for (int sub = 0; sub < kNSubs; ++sub) {
        Float4 sum_x = four(0), sum_q = four(0), sum_qq = four(0), sum_xq = four(0);
        for (int i = sub * kSubSize; i < (sub + 1) * kSubSize; i += 4) {
            const Float4 v = load4(x + i), q = load4(codes.q + i);
            sum_x += v;
            sum_q += q;
            sum_qq += q * q;
            sum_xq += v * q;
        }
        const double scale = codes.scale[sub], min = codes.min[sub];
        aa += scale * scale * total(sum_qq);
        ab += scale * min * total(sum_q);
        bb += min * min * kSubSize;
        xa += scale * total(sum_xq);
        xb += min * total(sum_x);
    }
    const double determinant = aa * bb - ab * ab;
    if (bb == 0 || determinant <= 1e-9 * aa * bb) {
        if (aa == 0 || bb != 0) return false;
        d = static_cast<float>(xa / aa);
        dmin = 0;
    } else {
        d = static_cast<float>((xa * bb - xb * ab) / determinant);
        dmin = static_cast<float>((xa * ab - xb * aa) / determinant);
    }
    return d > 0 && dmin >= 0;
}

void store(const Codes& codes, uint8_t* out) {
    store_half(out, codes.d);
    store_half(out + 2, codes.dmin);
    uint8_t* packed = out + 4; // see scale_min in quant_decode.cpp
    std::memset(packed, 0, 12);
    for (int sub = 0; sub < kNSubs; ++sub) {
        const auto scale = static_cast<uint32_t>(codes.scale[sub]), min = static_cast<uint32_t>(codes.min[sub]);
        if (sub < 4) {
            packed[sub] = static_cast<uint8_t>(packed[sub] | scale);
            packed[sub + 4] = static_cast<uint8_t>(packed[sub + 4] | min);
        } else {
            packed[sub + 4] = static_cast<uint8_t>((scale & 15) | (min & 15) << 4);
            packed[sub - 4] = static_cast<uint8_t>(packed[sub - 4] | scale >> 4 << 6);
            packed[sub] = static_cast<uint8_t>(packed[sub] | min >> 4 << 6);
        }
    }
    for (int i = 0; i < kSuperBlock / 2; ++i) {
        const float* q = codes.q + i / 32 * 64 + i % 32;
        out[16 + i] = static_cast<uint8_t>(static_cast<uint32_t>(q[0]) | static_cast<uint32_t>(q[32]) << 4);
    }
}

} // namespace

void encode_q4_k(const float* in, uint8_t* out) {
    float x[kSuperBlock];
    if (!load_block(in, x)) {
        std::memset(out, 0, 144);
        return;
    }
    Affine wish[kNSubs], largest;
    for (int sub = 0; sub < kNSubs; ++sub) {
        wish[sub] = fit(x + sub * kSubSize);
        largest.scale = std::max(largest.scale, wish[sub].scale);
        largest.min = std::max(largest.min, wish[sub].min);
    }
    Codes codes;
    codes.d = storable(largest.scale / 63); // some unit even if all scales are zero
    codes.dmin = largest.min > 0 ? storable(largest.min / 63) : 0.0f;
    round_block(x, wish, codes);
    for (int round = 0; round < 2; ++round) {
        Codes again;
        if (!solve_units(x, codes, again.d, again.dmin)) break;
        again.d = storable(again.d);
        again.dmin = again.dmin > 0 ? storable(again.dmin) : 0.0f;
        round_block(x, wish, again);
        if (again.error >= codes.error) break;
        codes = again;
    }
    store(codes, out);
}

} // namespace auspex
