// Block formats on the host: bit-exact decoding and encoding by the digests of gguf-py's results (printed by
// tests/peers/quant_digests.py), the meaning of every bit by tests/reference/quants.h, and how far encoding is off.
#include "reference/half.h"
#include "reference/quants.h"
#include "tensor/half.h"
#include "tensor/quant_blocks.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace auspex::quant_blocks_test {
namespace {

constexpr DType kFloatTypes[] = {DType::f32,  DType::f16,  DType::bf16, DType::q8_0, DType::q4_0,
                                 DType::q4_1, DType::q5_0, DType::q5_1, DType::q2_k, DType::q3_k,
                                 DType::q4_k, DType::q5_k, DType::q6_k};
constexpr DType kEncodedTypes[] = {DType::f32,  DType::f16,  DType::bf16, DType::q8_0,
                                   DType::q4_0, DType::q4_k, DType::q6_k};

// ---- what quant_digests.py does, in C++
// -------------------------------------------------------------------------------

uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t random_word(uint64_t seed, uint64_t index) {
    return mix(seed + (index + 1) * 0x9e3779b97f4a7c15u);
}

// Of words given one after another; parts add up.
class Digest {
  public:
    void add(uint32_t word) { sum_ += mix(n_++ << 32 | word); }
    uint64_t value() const { return sum_; }

  private:
    uint64_t n_ = 0, sum_ = 0;
};

std::vector<uint64_t> half_offsets(DType dtype) { // where a block holds its f16 scales
    switch (dtype) {
    case DType::q8_0:
    case DType::q4_0:
    case DType::q5_0:
        return {0};
    case DType::q4_1:
    case DType::q5_1:
    case DType::q4_k:
    case DType::q5_k:
        return {0, 2};
    case DType::q2_k:
        return {80, 82};
    case DType::q3_k:
        return {108};
    case DType::q6_k:
        return {208};
    default:
        return {};
    }
}

// Random bytes; one block in eight has zero, extreme, subnormal, infinite or NaN scales.
std::vector<std::byte> random_blocks(DType dtype, uint64_t first, uint64_t count) {
    constexpr uint16_t special[] = {0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x0400, 0x7bff, 0xfbff,
                                    0x7c00, 0xfc00, 0x7e00, 0x7c01, 0x3c00, 0xbc00, 0x0200, 0x83ff};
    const DTypeInfo& info = dtype_info(dtype);
    const uint64_t words = (info.block_bytes + 7) / 8;
    const auto offsets = half_offsets(dtype);
    std::vector<std::byte> out(count * info.block_bytes);
    for (uint64_t i = 0; i < count; ++i) {
        std::byte* block = out.data() + i * info.block_bytes;
        for (uint64_t byte = 0, word = 0; byte < info.block_bytes; ++byte) {
            if (byte % 8 == 0) word = random_word(static_cast<uint64_t>(info.ggml_id), (first + i) * words + byte / 8);
            block[byte] = static_cast<std::byte>(word >> byte % 8 * 8 & 0xff);
        }
        if ((first + i) % 8 != 0) continue;
        for (size_t k = 0; k < offsets.size(); ++k) {
            const uint16_t half = special[(first + i) / 8 >> 4 * k & 15];
            block[offsets[k]] = static_cast<std::byte>(half & 0xff);
            block[offsets[k] + 1] = static_cast<std::byte>(half >> 8);
        }
    }
    return out;
}

// Blocks of 32: bell-shaped at scales from 2^-40 to 2^-5, zeros, constants, spikes, ties for the largest magnitude and
// ties in rounding.
std::vector<float> encode_input(uint64_t n_blocks) {
    std::vector<float> out(n_blocks * 32);
    for (uint64_t block = 0; block < n_blocks; ++block) {
        const uint64_t kind = block % 16;
        float* x = out.data() + block * 32;
        float scale = std::ldexp(1.0f, static_cast<int>(block / 16 % 36) - 40);
        if (kind == 4 || kind == 5) scale = 1;
        for (uint64_t i = 0; i < 32; ++i) {
            const uint64_t word = random_word(1000, block * 32 + i);
            const int64_t bell =
                static_cast<int64_t>((word & 0xffff) + (word >> 16 & 0xffff) + (word >> 32 & 0xffff) + (word >> 48)) -
                131070;
            const int64_t halves = static_cast<int64_t>(word % 509) - 254;
            // Rounds towards minus infinity, as Python's // does.
            const int64_t few = halves >= 0 ? halves / 32 : -((31 - halves) / 32);
            const int64_t value = kind == 0             ? 0
                                  : kind == 2 && i > 0  ? 0
                                  : kind == 3           ? (bell < 0 ? -3 : 3)
                                  : kind == 4 && i != 7 ? halves
                                  : kind == 4           ? 254
                                  : kind == 5 && i != 9 ? few
                                  : kind == 5           ? -16
                                                        : bell;
            x[i] = static_cast<float>(value) * (kind == 4 || kind == 5 ? 0.5f : 1.0f) * scale;
            if (kind == 1) x[i] = x[0];
        }
    }
    return out;
}

std::vector<float> decoded(DType dtype, std::span<const std::byte> blocks) {
    std::vector<float> out(blocks.size() / dtype_info(dtype).block_bytes * dtype_info(dtype).block_elements);
    dequantize_blocks(dtype, blocks, out);
    return out;
}
std::vector<std::byte> encoded(DType dtype, std::span<const float> values) {
    std::vector<std::byte> out(file_row_bytes(dtype, values.size()));
    quantize_blocks(dtype, values, out);
    return out;
}

// ---- against gguf-py
// --------------------------------------------------------------------------------------------------

struct Expected {
    DType dtype;
    uint64_t digest;
};

class DecodeDigest : public testing::TestWithParam<Expected> {};

TEST_P(DecodeDigest, is_that_of_gguf_py) {
    constexpr uint64_t n_blocks = 208000, chunk = 16000;
    Digest digest;
    for (uint64_t first = 0; first < n_blocks; first += chunk)
        for (const float value : decoded(GetParam().dtype, random_blocks(GetParam().dtype, first, chunk)))
            digest.add(std::isnan(value) ? 0x7fc00000u : std::bit_cast<uint32_t>(value));
    EXPECT_EQ(digest.value(), GetParam().digest) << std::hex << digest.value();
}

INSTANTIATE_TEST_SUITE_P(
    QuantBlocks, DecodeDigest,
    testing::Values(Expected{DType::f32, 0xc7a70f18b2763492u}, Expected{DType::f16, 0x53c6e3678e761292u},
                    Expected{DType::bf16, 0xdb908b59f2c939efu}, Expected{DType::q8_0, 0x49b0343a6228886fu},
                    Expected{DType::q4_0, 0xaba96ba5118e7c2du}, Expected{DType::q4_1, 0x80d85adac99aa034u},
                    Expected{DType::q5_0, 0x41b4c13ad84776e0u}, Expected{DType::q5_1, 0xbb130356e89ba061u},
                    Expected{DType::q2_k, 0xa7a3d40ca6388226u}, Expected{DType::q3_k, 0x7821de301e1cda2cu},
                    Expected{DType::q4_k, 0xf696135a9eb136e2u}, Expected{DType::q5_k, 0x78bd759eccc7efd4u},
                    Expected{DType::q6_k, 0x83d06a7ff97360e5u}),
    [](const auto& test) { return std::string(dtype_name(test.param.dtype)); });

TEST(QuantBlocks, encodes_q8_0_and_q4_0_to_the_bytes_of_gguf_py) {
    const auto input = encode_input(48000);
    for (const auto& [dtype, expected] :
         {Expected{DType::q8_0, 0x2f30eaa9eb62593eu}, Expected{DType::q4_0, 0x850c532db785c010u}}) {
        Digest digest;
        for (const std::byte byte : encoded(dtype, input))
            digest.add(std::to_integer<uint32_t>(byte));
        EXPECT_EQ(digest.value(), expected) << dtype_name(dtype) << std::hex << " " << digest.value();
    }
}

TEST(QuantBlocks, narrows_to_f16_and_bf16_as_gguf_py) {
    std::vector<float> input(400000);
    for (uint64_t i = 0; i < input.size(); ++i) {
        auto bits = static_cast<uint32_t>(random_word(2000, i) >> 32);
        if ((bits & 0x7f800000u) == 0x7f800000u) bits &= 0x807fffffu;
        if (i % 2 == 0) bits = (bits & 0x8fffffffu) + 0x30000000u;
        input[i] = std::bit_cast<float>(bits);
    }
    for (const auto& [dtype, expected] :
         {Expected{DType::f16, 0x1a36881605de307au}, Expected{DType::bf16, 0x2f23bfcfca3d95e2u}}) {
        const auto bytes = encoded(dtype, input);
        Digest digest;
        for (size_t i = 0; i < bytes.size(); i += 2)
            digest.add(std::to_integer<uint32_t>(bytes[i]) | std::to_integer<uint32_t>(bytes[i + 1]) << 8);
        EXPECT_EQ(digest.value(), expected) << dtype_name(dtype) << std::hex << " " << digest.value();
    }
}

// ---- against the description of the formats
// ---------------------------------------------------------------------------

TEST(QuantBlocks, decodes_every_element_as_described) {
    for (const DType dtype : kFloatTypes) {
        const uint64_t n_blocks = 4000 / dtype_info(dtype).block_elements + 64;
        const auto blocks = random_blocks(dtype, 1000000, n_blocks);
        const auto values = decoded(dtype, blocks);
        const auto expected = reference::dequantize(dtype, blocks);
        ASSERT_EQ(values.size(), expected.size());
        for (size_t i = 0; i < values.size(); ++i) {
            if (std::isnan(expected[i]) || std::isinf(expected[i])) {
                EXPECT_FALSE(std::isfinite(values[i])) << dtype_name(dtype) << " element " << i;
                continue;
            }
            // Two products and a difference in f32, whose terms may cancel: both are below 65504 · 255 · 64.
            const double tolerance =
                std::fabs(expected[i]) * 0x1p-22 + (is_quantized(dtype) ? 65504.0 * 64 * 0x1p-20 : 0);
            ASSERT_NEAR(values[i], expected[i], tolerance) << dtype_name(dtype) << " element " << i;
        }
    }
}

// The same with scales of 1, where all is exact.
TEST(QuantBlocks, decodes_every_bit_where_nothing_rounds) {
    for (const DType dtype : kFloatTypes) {
        if (!is_quantized(dtype)) continue;
        auto blocks = random_blocks(dtype, 0, 400);
        for (size_t at = 0; at < blocks.size(); at += dtype_info(dtype).block_bytes)
            for (const uint64_t offset : half_offsets(dtype)) {
                blocks[at + offset] = std::byte{0x00};
                blocks[at + offset + 1] = std::byte{0x3c}; // 1.0
            }
        const auto values = decoded(dtype, blocks);
        const auto expected = reference::dequantize(dtype, blocks);
        ASSERT_EQ(values.size(), expected.size());
        for (size_t i = 0; i < values.size(); ++i)
            ASSERT_EQ(values[i], expected[i]) << dtype_name(dtype) << " element " << i;
    }
}

TEST(Half, equals_the_reference_for_every_half) {
    for (uint32_t bits = 0; bits < 65536; ++bits) {
        const auto half = static_cast<uint16_t>(bits);
        const float wide = half_to_float(half);
        if (std::isnan(reference::half_to_float(half))) {
            EXPECT_TRUE(std::isnan(wide)) << bits;
            EXPECT_EQ(float_to_half(wide), (half & 0x8000) | 0x7e00) << bits;
        } else {
            ASSERT_EQ(std::bit_cast<uint32_t>(wide), std::bit_cast<uint32_t>(reference::half_to_float(half))) << bits;
            ASSERT_EQ(float_to_half(wide), half);
        }
        ASSERT_EQ(std::bit_cast<uint32_t>(bfloat_to_float(half)),
                  std::bit_cast<uint32_t>(reference::bfloat_to_float(half)));
    }
}

TEST(Half, rounds_as_the_reference) {
    for (uint32_t bits = 0; bits < 0xffff0000u; bits += 1021) { // a prime step meets every exponent often
        const float value = std::bit_cast<float>(bits);
        ASSERT_EQ(float_to_half(value), reference::float_to_half(value)) << bits;
        ASSERT_EQ(float_to_bfloat(value), reference::float_to_bfloat(value)) << bits;
    }
    for (uint32_t half = 0; half < 0x7c00; ++half) { // the ties between neighbours, and what lies beside them
        const double middle =
            (static_cast<double>(reference::half_to_float(static_cast<uint16_t>(half))) +
             (half == 0x7bff ? 65536.0
                             : static_cast<double>(reference::half_to_float(static_cast<uint16_t>(half + 1))))) /
            2;
        const float tie = static_cast<float>(middle);
        for (const float value : {tie, std::nextafterf(tie, 0), std::nextafterf(tie, INFINITY)})
            for (const float sign : {1.0f, -1.0f})
                ASSERT_EQ(float_to_half(sign * value), reference::float_to_half(sign * value)) << half;
    }
}

// ---- how far encoding is off
// ------------------------------------------------------------------------------------------

// Normally distributed by Box and Muller.
std::vector<float> normal_values(size_t n, uint64_t seed) {
    std::vector<float> out(n);
    for (size_t i = 0; i < n; ++i) {
        const double u = (static_cast<double>(random_word(seed, 2 * i) >> 11) + 0.5) * 0x1p-53;
        const double v = static_cast<double>(random_word(seed, 2 * i + 1) >> 11) * 0x1p-53;
        out[i] = static_cast<float>(std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v));
    }
    return out;
}

double relative_rms(std::span<const float> wanted, std::span<const float> got) {
    double error = 0, all = 0;
    for (size_t i = 0; i < wanted.size(); ++i) {
        error += std::pow(static_cast<double>(wanted[i]) - static_cast<double>(got[i]), 2);
        all += std::pow(static_cast<double>(wanted[i]), 2);
    }
    return all > 0 ? std::sqrt(error / all) : error;
}

// Bounds: less than 0.5 % above what was measured, so that a step of the search that fails shows; ggml's own encoder
// gives 0.0713 (q4_k) and 0.0177 (q6_k) on such data.
TEST(QuantBlocks, encoding_normal_weights_costs_little) {
    const auto input = normal_values(256 * 1024, 7);
    for (const float scale : {1.0f, 0.02f, 300.0f}) {
        auto scaled = input;
        for (float& v : scaled)
            v *= scale;
        for (const auto& [dtype, most] : std::initializer_list<std::pair<DType, double>>{{DType::f32, 0},
                                                                                         {DType::f16, 0.00025},
                                                                                         {DType::bf16, 0.0018},
                                                                                         {DType::q8_0, 0.00535},
                                                                                         {DType::q4_0, 0.0858},
                                                                                         {DType::q4_k, 0.0701},
                                                                                         {DType::q6_k, 0.0170}}) {
            const double error = relative_rms(scaled, decoded(dtype, encoded(dtype, scaled)));
            EXPECT_LE(error, most) << dtype_name(dtype) << " at scale " << scale;
            EXPECT_GE(error, most * 0.8) << dtype_name(dtype); // the bound says something
        }
    }
}

// What the rounding of a small f16 unit (by half of 2^-24) can do to a value.
double unit_error(DType dtype) {
    switch (dtype) {
    case DType::q8_0:
        return 127 * 0x1p-25;
    case DType::q4_0:
        return 8 * 0x1p-25;
    case DType::q4_k:
        return 63 * 15 * 0x1p-25;
    case DType::q6_k:
        return 128 * 32 * 0x1p-25;
    default:
        return 0x1p-25;
    }
}

// Rows of weights have outliers, offsets and quiet stretches; the error stays below one step of a plain rounding.
TEST(QuantBlocks, encoding_uneven_weights_stays_within_a_step) {
    auto input = normal_values(256 * 64, 11);
    for (size_t i = 0; i < input.size(); ++i) {
        const size_t block = i / 256, sub = i / 16;
        if (block % 4 == 1) input[i] = input[i] * 0.01f + (sub % 2 ? 1.0f : -1.0f); // offset
        if (block % 4 == 2 && i % 97 == 0) input[i] *= 50.0f;                       // outliers
        if (block % 4 == 3) input[i] *= std::ldexp(1.0f, -static_cast<int>(sub % 16));
    }
    for (const auto& [dtype, sub, steps] : std::initializer_list<std::tuple<DType, size_t, float>>{
             {DType::q8_0, 32, 254}, {DType::q4_0, 32, 15}, {DType::q4_k, 32, 15}, {DType::q6_k, 16, 62}}) {
        const auto got = decoded(dtype, encoded(dtype, input));
        const size_t elements = dtype_info(dtype).block_elements;
        for (size_t at = 0; at < input.size(); at += sub) {
            const auto magnitude_of = [&](size_t from, size_t n) {
                float most = 0;
                for (size_t i = from; i < from + n; ++i)
                    most = std::max(most, std::fabs(input[i]));
                return most;
            };
            float step = 2 * magnitude_of(at, sub) / steps;
            // Sub-blocks share the unit of their small scales, of which there are 63 or 128: half a unit may be lost.
            if (elements == 256) step += magnitude_of(at / 256 * 256, 256) / 60;
            // The unit itself is an f16, whose own unit is 2^-24 for small ones; the largest code is below 63 · 15.
            step += static_cast<float>(unit_error(dtype));
            for (size_t i = at; i < at + sub; ++i)
                ASSERT_NEAR(got[i], input[i], 1.01f * step) << dtype_name(dtype) << " element " << i;
        }
    }
}

TEST(QuantBlocks, zeros_stay_zero) {
    const std::vector<float> zeros(512);
    for (const DType dtype : kEncodedTypes)
        for (const float value : decoded(dtype, encoded(dtype, zeros)))
            ASSERT_EQ(value, 0.0f) << dtype_name(dtype);
}

TEST(QuantBlocks, constants_come_back) {
    for (const float constant : {1.0f, -1.0f, 0.02f, -0.02f, 3e4f, -3e4f, 1e-3f}) {
        const std::vector<float> input(512, constant);
        for (const DType dtype : kEncodedTypes)
            for (const float value : decoded(dtype, encoded(dtype, input)))
                ASSERT_NEAR(value, constant,
                            std::fabs(constant) * (dtype == DType::bf16 ? 0x1p-8 : 0x1p-10) + unit_error(dtype))
                    << dtype_name(dtype);
    }
}

TEST(QuantBlocks, tiny_and_huge_values_give_finite_weights_of_the_k_types) {
    for (const DType dtype : {DType::q4_k, DType::q6_k})
        for (const float scale : {1e-45f, 1e-38f, 1e-10f, 3e-8f, 1e-7f, 1e-6f, 1e5f, 1e8f, 1e20f, 1e37f}) {
            auto input = normal_values(512, 3);
            for (float& v : input)
                v *= scale;
            input[300] = std::numeric_limits<float>::max();
            input[301] = -std::numeric_limits<float>::max();
            const auto got = decoded(dtype, encoded(dtype, input));
            for (size_t i = 0; i < got.size(); ++i) {
                ASSERT_TRUE(std::isfinite(got[i])) << dtype_name(dtype) << " " << scale;
            }
            for (size_t i = 0; i < 256; ++i)
                ASSERT_LE(std::fabs(got[i]), 6 * scale + 0x1p-24f) << dtype_name(dtype) << " " << scale;
            // Where the format reaches, the values are kept.
            if (scale < 1e-6f || scale > 1e5f) continue;
            EXPECT_LT(relative_rms(std::span(input).first(256), std::span(got).first(256)), 0.3) << scale;
        }
}

TEST(QuantBlocks, encoding_is_deterministic_and_blocks_are_independent) {
    auto input = normal_values(256 * 16, 5);
    for (const DType dtype : kEncodedTypes) {
        const auto whole = encoded(dtype, input);
        ASSERT_EQ(encoded(dtype, input), whole);
        const uint32_t elements = dtype_info(dtype).block_elements, bytes = dtype_info(dtype).block_bytes;
        for (size_t block = 0; block < input.size() / elements; ++block) {
            const auto alone = encoded(dtype, std::span(input).subspan(block * elements, elements));
            ASSERT_EQ(std::memcmp(alone.data(), whole.data() + block * bytes, bytes), 0) << dtype_name(dtype);
        }
    }
}

// What was decoded is encoded again without loss that grows: q8_0 and q4_0 exactly, the others nearly.
TEST(QuantBlocks, encoding_decoded_values_again_keeps_them) {
    const auto input = normal_values(256 * 64, 9);
    for (const DType dtype : kEncodedTypes) {
        const auto once = decoded(dtype, encoded(dtype, input));
        const auto twice = decoded(dtype, encoded(dtype, once));
        EXPECT_LE(relative_rms(once, twice), dtype == DType::q4_k   ? 0.02
                                             : dtype == DType::q6_k ? 0.006
                                                                    : 0.0005)
            << dtype_name(dtype);
    }
}

} // namespace
} // namespace auspex::quant_blocks_test
