// Scales of a q6_k block by the search of quant_encode_q4_k.cpp, without minima.
#include "tensor/quant_encode_k.h"
#include "tensor/quant_search.h"

#include <cstring>

namespace auspex {
namespace {

// x ≈ d·scale·q, q −32…31; scale is −128…127, per sub-block of 16.
constexpr int kNSubs = 16, kSubSize = 16;

// The scale of the rounding that explains most of Σx²; the extreme value goes to about −32, so it may be negative.
float fit(const float* x) {
    float extreme = 0;
    for (int i = 0; i < kSubSize; ++i)
        extreme = std::fabs(x[i]) > std::fabs(extreme) ? x[i] : extreme;
    if (std::fabs(extreme) < kLeastUnit) return 0;
    float most = -1, best = 0;
    for (int step = 0; step < 16; ++step) {
        const float inverse = -(30.4f + 0.2f * static_cast<float>(step)) / extreme;
        Float4 sum_qq = four(0), sum_xq = four(0);
        for (int i = 0; i < kSubSize; i += 4) {
            const Float4 v = load4(x + i), q = nearest(clamped(v * four(inverse), -32.0f, 31.0f));
            sum_qq += q * q;
            sum_xq += v * q;
        }
        const float xq = total(sum_xq), qq = total(sum_qq);
        if (xq * xq > most * qq) {
            most = xq * xq / qq;
            best = xq / qq;
        }
    }
    return best;
}

struct Codes {
    float d = 0; // as the file holds it; of either sign
    float scale[kNSubs];
    float q[kSuperBlock];
    float error = 0;
};

// Σ(x − scale·q)² with the best q, which it stores where `q` is not null.
float round_sub(const float* x, float scale, float* q) {
    const float inverse = scale != 0 ? 1.0f / scale : 0.0f;
    Float4 sum = four(0);
    for (int i = 0; i < kSubSize; i += 4) {
        const Float4 v = load4(x + i), rounded = nearest(clamped(v * four(inverse), -32.0f, 31.0f));
        const Float4 miss = v - four(scale) * rounded;
        sum += miss * miss;
        if (q) store4(q + i, rounded);
    }
    return total(sum);
}

// Integer scales near those wished for, in the unit d.
void round_block(const float* x, const float* wish, Codes& codes) {
    codes.error = 0;
    for (int sub = 0; sub < kNSubs; ++sub, x += kSubSize) {
        const float near_scale = nearest(clamped(wish[sub] / codes.d, -128.0f, 127.0f));
        float least = -1;
        for (int trial = -1; trial <= 1; ++trial) {
            const float scale = near_scale + static_cast<float>(trial);
            if (scale < -128 || scale > 127) continue;
            const float error = round_sub(x, codes.d * scale, nullptr);
            if (least >= 0 && error >= least) continue;
            least = error;
            codes.scale[sub] = scale;
        }
        codes.error += round_sub(x, codes.d * codes.scale[sub], codes.q + sub * kSubSize);
    }
}

// The unit that suits the integers best; false when it is not determined.
bool solve_unit(const float* x, const Codes& codes, float& d) {
    double aa = 0, xa = 0;
    for (int sub = 0; sub < kNSubs; ++sub) {
        Float4 sum_qq = four(0), sum_xq = four(0);
        for (int i = sub * kSubSize; i < (sub + 1) * kSubSize; i += 4) {
            const Float4 q = load4(codes.q + i);
            sum_qq += q * q;
            sum_xq += load4(x + i) * q;
        }
        const double scale = codes.scale[sub];
        aa += scale * scale * total(sum_qq);
        xa += scale * total(sum_xq);
    }
    if (aa == 0 || xa == 0) return false;
    d = static_cast<float>(xa / aa);
    return true;
}

void store(const Codes& codes, uint8_t* out) {
    uint8_t *low = out, *high = out + 128, *scales = out + 192;
    std::memset(out, 0, 192);
    for (int i = 0; i < kSuperBlock; ++i) {
        const auto q = static_cast<uint32_t>(codes.q[i] + 32.0f);
        uint8_t& l = low[i / 128 * 64 + i % 64];
        uint8_t& h = high[i / 128 * 32 + i % 32];
        l = static_cast<uint8_t>(l | (q & 15) << (i % 128 / 64 * 4));
        h = static_cast<uint8_t>(h | q >> 4 << (i % 128 / 32 * 2));
    }
    for (int sub = 0; sub < kNSubs; ++sub)
        scales[sub] = static_cast<uint8_t>(static_cast<int8_t>(codes.scale[sub]));
    store_half(out + 208, codes.d);
}

} // namespace

void encode_q6_k(const float* in, uint8_t* out) {
    float x[kSuperBlock];
    if (!load_block(in, x)) {
        std::memset(out, 0, 210);
        return;
    }
    float wish[kNSubs], extreme = 0;
    for (int sub = 0; sub < kNSubs; ++sub) {
        wish[sub] = fit(x + sub * kSubSize);
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
