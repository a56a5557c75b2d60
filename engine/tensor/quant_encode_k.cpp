// Scales of q4_k and q6_k blocks by search: (1) each sub-block is fitted alone, rounding on a grid of steps and solving
// for the best scale (and minimum) of each rounding; (2) these are rounded to the block's shared units, trying the
// neighbours; (3) the units are solved for again, and (2) repeated if that helps. The measure is the squared error.
// Sums run in four fixed lanes, so that the result is the same everywhere and no chain of additions is waited for.
#include "tensor/quant_encode_k.h"

#include "tensor/half.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace auspex {
namespace {

constexpr int block_size = 256;
constexpr float max_half = 65504.0f;
constexpr float least_step = 0x1p-24f; // the smallest unit an f16 can hold

// Nearest integer of |v| < 2^22, halves to even: above 2^23 a float has no places behind the point.
float nearest(float v) {
    constexpr float shift = 12582912.0f; // 1.5 · 2^23
    return (v + shift) - shift;
}
float clamped(float v, float low, float high) {
    v = v < low ? low : v;
    return v > high ? high : v;
}

// What the file will hold of a unit that is positive or negative but not zero.
float storable(float unit) {
    const float magnitude = half_to_float(float_to_half(std::min(std::fabs(unit), max_half)));
    return std::copysign(std::max(magnitude, least_step), unit);
}
void store_half(uint8_t* at, float value) {
    const uint16_t bits = float_to_half(value);
    at[0] = static_cast<uint8_t>(bits & 0xff);
    at[1] = static_cast<uint8_t>(bits >> 8);
}

// The block with what no code can express taken off (so that no square overflows), and its largest magnitude.
float load_clamped(const float* in, float* x) {
    constexpr float limit = 0x1p28f; // above 65504 · 128 · 32
    float largest = 0;
    for (int i = 0; i < block_size; ++i) {
        x[i] = clamped(in[i], -limit, limit);
        largest = std::max(largest, std::fabs(x[i]));
    }
    return largest;
}

// Four running sums and their total.
struct Lanes {
    float sum[4] = {};
    float total() const { return (sum[0] + sum[1]) + (sum[2] + sum[3]); }
};

// ---- q4_k: x ≈ d·scale·q − dmin·min, q 0…15, scale and min 0…63 per sub-block of 32 -------------------------------------

namespace q4 {

constexpr int n_subs = 8, sub_size = 32;

struct Affine {
    float scale = 0, min = 0; // x ≈ scale·q − min, neither is negative
};

// The best scale and min for x by the rounding that `origin` and `inverse` give, and how much of Σx² they explain.
float explain(const float* x, float sum_x, float origin, float inverse, Affine& best) {
    Lanes sum_q, sum_qq, sum_xq;
    for (int i = 0; i < sub_size; i += 4)
        for (int k = 0; k < 4; ++k) {
            const float v = x[i + k], q = nearest(clamped((v - origin) * inverse, 0.0f, 15.0f));
            sum_q.sum[k] += q;
            sum_qq.sum[k] += q * q;
            sum_xq.sum[k] += v * q;
        }
    const float q = sum_q.total(), qq = sum_qq.total(), xq = sum_xq.total();
    const float spread = sub_size * qq - q * q;
    if (qq <= 0) return 0;
    if (spread > 0) {
        const float covariance = sub_size * xq - sum_x * q;
        best.scale = covariance / spread;
        best.min = (best.scale * q - sum_x) / sub_size;
        if (best.scale > 0 && best.min >= 0)
            return (covariance * covariance / spread + sum_x * sum_x) / sub_size;
    }
    best = {std::max(xq / qq, 0.0f), 0.0f}; // the line that goes through zero
    return best.scale * xq;
}

Affine fit(const float* x) {
    float low = 0, high = x[0];
    Lanes sum;
    for (int i = 0; i < sub_size; ++i) {
        low = std::min(low, x[i]);
        high = std::max(high, x[i]);
        sum.sum[i % 4] += x[i];
    }
    const float range = high - low, sum_x = sum.total();
    if (range < least_step) return {0.0f, -sum_x / sub_size > 0 ? -sum_x / sub_size : 0.0f};
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
    float scale[n_subs], min[n_subs];
    float q[block_size];
    float error = 0;
};

// Σ(x − (scale·q − min))² with the best q, which it stores.
float round_sub(const float* x, float scale, float min, float* q) {
    const float inverse = scale > 0 ? 1.0f / scale : 0.0f;
    Lanes sum;
    for (int i = 0; i < sub_size; i += 4)
        for (int k = 0; k < 4; ++k) {
            q[i + k] = nearest(clamped((x[i + k] + min) * inverse, 0.0f, 15.0f));
            const float miss = x[i + k] - (scale * q[i + k] - min);
            sum.sum[k] += miss * miss;
        }
    return sum.total();
}

// Integer scales and minima near those wished for, in the units d and dmin.
void round_block(const float* x, const Affine* wish, Codes& codes) {
    codes.error = 0;
    for (int sub = 0; sub < n_subs; ++sub) {
        const float near_scale = nearest(clamped(wish[sub].scale / codes.d, 0.0f, 63.0f));
        const float near_min = codes.dmin > 0 ? nearest(clamped(wish[sub].min / codes.dmin, 0.0f, 63.0f)) : 0.0f;
        float least = -1, trial[sub_size];
        for (float scale = std::max(near_scale - 1, 0.0f); scale <= std::min(near_scale + 1, 63.0f); ++scale)
            for (float min = std::max(near_min - 1, 0.0f); min <= std::min(near_min + 1, 63.0f); ++min) {
                if (codes.dmin == 0 && min > 0) break;
                const float error = round_sub(x + sub * sub_size, codes.d * scale, codes.dmin * min, trial);
                if (least >= 0 && error >= least) continue;
                least = error;
                codes.scale[sub] = scale;
                codes.min[sub] = min;
                std::copy(trial, trial + sub_size, codes.q + sub * sub_size);
            }
        codes.error += least;
    }
}

// The units that suit the integers best; false when they are not determined.
bool solve_units(const float* x, const Codes& codes, float& d, float& dmin) {
    double aa = 0, ab = 0, bb = 0, xa = 0, xb = 0; // x ≈ d·a − dmin·b
    for (int sub = 0; sub < n_subs; ++sub) {
        Lanes sum_x, sum_q, sum_qq, sum_xq;
        for (int i = sub * sub_size; i < (sub + 1) * sub_size; ++i) {
            const float q = codes.q[i];
            sum_x.sum[i % 4] += x[i];
            sum_q.sum[i % 4] += q;
            sum_qq.sum[i % 4] += q * q;
            sum_xq.sum[i % 4] += x[i] * q;
        }
        const double scale = codes.scale[sub], min = codes.min[sub];
        aa += scale * scale * sum_qq.total();
        ab += scale * min * sum_q.total();
        bb += min * min * sub_size;
        xa += scale * sum_xq.total();
        xb += min * sum_x.total();
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
    for (int sub = 0; sub < n_subs; ++sub) {
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
    for (int i = 0; i < block_size / 2; ++i) {
        const float* q = codes.q + i / 32 * 64 + i % 32;
        out[16 + i] = static_cast<uint8_t>(static_cast<uint32_t>(q[0]) | static_cast<uint32_t>(q[32]) << 4);
    }
}

} // namespace q4

// ---- q6_k: x ≈ d·scale·q, q −32…31, scale −128…127 per sub-block of 16 --------------------------------------------------

namespace q6 {

constexpr int n_subs = 16, sub_size = 16;

// The scale of the rounding that explains most of Σx²; the extreme value goes to about −32, so it may be negative.
float fit(const float* x) {
    float extreme = 0;
    for (int i = 0; i < sub_size; ++i)
        extreme = std::fabs(x[i]) > std::fabs(extreme) ? x[i] : extreme;
    if (std::fabs(extreme) < least_step) return 0;
    float most = -1, best = 0;
    for (int step = 0; step < 16; ++step) {
        const float inverse = -(30.4f + 0.2f * static_cast<float>(step)) / extreme;
        Lanes sum_qq, sum_xq;
        for (int i = 0; i < sub_size; i += 4)
            for (int k = 0; k < 4; ++k) {
                const float v = x[i + k], q = nearest(clamped(v * inverse, -32.0f, 31.0f));
                sum_qq.sum[k] += q * q;
                sum_xq.sum[k] += v * q;
            }
        const float xq = sum_xq.total(), qq = sum_qq.total();
        if (xq * xq > most * qq) {
            most = xq * xq / qq;
            best = xq / qq;
        }
    }
    return best;
}

struct Codes {
    float d = 0; // as the file holds it; of either sign
    float scale[n_subs];
    float q[block_size];
    float error = 0;
};

float round_sub(const float* x, float scale, float* q) {
    const float inverse = scale != 0 ? 1.0f / scale : 0.0f;
    Lanes sum;
    for (int i = 0; i < sub_size; i += 4)
        for (int k = 0; k < 4; ++k) {
            q[i + k] = nearest(clamped(x[i + k] * inverse, -32.0f, 31.0f));
            const float miss = x[i + k] - scale * q[i + k];
            sum.sum[k] += miss * miss;
        }
    return sum.total();
}

void round_block(const float* x, const float* wish, Codes& codes) {
    codes.error = 0;
    for (int sub = 0; sub < n_subs; ++sub) {
        const float near_scale = nearest(clamped(wish[sub] / codes.d, -128.0f, 127.0f));
        float least = -1, trial[sub_size];
        for (float scale = std::max(near_scale - 1, -128.0f); scale <= std::min(near_scale + 1, 127.0f); ++scale) {
            const float error = round_sub(x + sub * sub_size, codes.d * scale, trial);
            if (least >= 0 && error >= least) continue;
            least = error;
            codes.scale[sub] = scale;
            std::copy(trial, trial + sub_size, codes.q + sub * sub_size);
        }
        codes.error += least;
    }
}

bool solve_unit(const float* x, const Codes& codes, float& d) {
    double aa = 0, xa = 0;
    for (int sub = 0; sub < n_subs; ++sub) {
        Lanes sum_qq, sum_xq;
        for (int i = sub * sub_size; i < (sub + 1) * sub_size; ++i) {
            sum_qq.sum[i % 4] += codes.q[i] * codes.q[i];
            sum_xq.sum[i % 4] += x[i] * codes.q[i];
        }
        const double scale = codes.scale[sub];
        aa += scale * scale * sum_qq.total();
        xa += scale * sum_xq.total();
    }
    if (aa == 0 || xa == 0) return false;
    d = static_cast<float>(xa / aa);
    return true;
}

void store(const Codes& codes, uint8_t* out) {
    uint8_t *low = out, *high = out + 128, *scales = out + 192;
    std::memset(out, 0, 192);
    for (int i = 0; i < block_size; ++i) {
        const auto q = static_cast<uint32_t>(codes.q[i] + 32.0f);
        uint8_t& l = low[i / 128 * 64 + i % 64];
        uint8_t& h = high[i / 128 * 32 + i % 32];
        l = static_cast<uint8_t>(l | (q & 15) << (i % 128 / 64 * 4));
        h = static_cast<uint8_t>(h | q >> 4 << (i % 128 / 32 * 2));
    }
    for (int sub = 0; sub < n_subs; ++sub)
        scales[sub] = static_cast<uint8_t>(static_cast<int8_t>(codes.scale[sub]));
    store_half(out + 208, codes.d);
}

} // namespace q6

} // namespace

void encode_q4_k(const float* in, uint8_t* out) {
    using namespace q4;
    float x[block_size];
    if (load_clamped(in, x) < least_step / 2) {
        std::memset(out, 0, 144);
        return;
    }
    Affine wish[n_subs], largest;
    for (int sub = 0; sub < n_subs; ++sub) {
        wish[sub] = fit(x + sub * sub_size);
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

void encode_q6_k(const float* in, uint8_t* out) {
    using namespace q6;
    float x[block_size];
    if (load_clamped(in, x) < least_step / 2) {
        std::memset(out, 0, 210);
        return;
    }
    float wish[n_subs], extreme = 0;
    for (int sub = 0; sub < n_subs; ++sub) {
        wish[sub] = fit(x + sub * sub_size);
        extreme = std::fabs(wish[sub]) > std::fabs(extreme) ? wish[sub] : extreme;
    }
    Codes codes;
    codes.d = storable(extreme / -128);
    round_block(x, wish, codes);
    for (int round = 0; round < 2; ++round) {
        Codes again;
        if (!solve_unit(x, codes, again.d)) break;
        again.d = storable(again.d);
        round_block(x, wish, again);
        if (again.error >= codes.error) break;
        codes = again;
    }
    store(codes, out);
}

} // namespace auspex
