// The mat-vec family where x is rounded to 8 bits, as passes that only draft take it: right to the rounding of x, in every block format;
// and the same bits whatever the company, the sizes, and the member of the family (gate_up_test.cpp, qkv_test.cpp, best_tokens_test.cpp).
#include "kernels/linear.h"
#include "kernels/prenorm.h"

namespace auspex::int8_test {
namespace {

constexpr uint32_t kBlock = 32;

class Int8 : public LinearTest {
  protected:
    static constexpr uint32_t kOut = 37, kShard = 20;
    // A device without packed products has no such variant: x is as it is then.
    bool rounds() { return kernels(Variant::int8).tuning().int8_drafts; }
    Tensor weights(std::vector<float>& values, const QuantCase& c, uint32_t shard_rows = kShard) { return quantized_tensor(values, kOut, c.cols, c.dtype, 41, shard_rows); }

    // Half of what a code is worth, for each x: as far as rounding moves it.
    static std::vector<double> half_steps(std::span<const float> x) {
        std::vector<double> half(x.size());
        for (size_t from = 0; from < x.size(); from += kBlock) {
            float largest = 0;
            for (uint32_t i = 0; i < kBlock; ++i) largest = std::max(largest, std::abs(x[from + i]));
            std::fill_n(half.begin() + ptrdiff_t(from), kBlock, largest / 254.0);
        }
        return half;
    }
};

class Int8Formats : public Int8, public ::testing::WithParamInterface<QuantCase> {};

// x whose codes are known, as none lies near the middle between two: then the sums are exact but for f32's own roundings.
TEST_P(Int8Formats, multiply_codes_exactly) {
    const QuantCase c = GetParam();
    std::vector<float> values;
    const Tensor weight = weights(values, c);
    for (const uint32_t n_rows : {1u, 4u}) {
        const std::vector<float> sizes = random_floats(n_rows * c.cols / kBlock, 42), codes = random_floats(n_rows * c.cols, 43, 60.0f), off = random_floats(n_rows * c.cols, 44),
                                 before = random_floats(n_rows * kOut, 45);
        std::vector<float> x(n_rows * c.cols), rounded(x.size());
        for (size_t i = 0; i < x.size(); ++i) {
            const bool is_largest = i % kBlock == i / kBlock % kBlock;
            const float scale = i / kBlock % 5 == 3 ? 0.0f : std::abs(sizes[i / kBlock]) / 127.0f, code = is_largest ? -127.0f : std::clamp(std::round(codes[i]), -126.0f, 126.0f);
            x[i] = rounds() && !is_largest ? scale * (code + std::clamp(off[i], -0.4f, 0.4f)) : scale * code;
            rounded[i] = rounds() ? scale * code : x[i];
        }
        const std::vector<float> found = multiply(kernels(Variant::int8), kMatvec, weight, x, &before);
        // A step is two products, a difference and an fma in a lane's chain, then comes the tree. What of formats with a least value cancels
        // is a few times what is left.
        const uint32_t lanes = kernels(Variant::int8).tuning().lanes;
        const double chain = 4.0 * ((c.cols / kBlock + lanes - 1) / lanes) + std::log2(lanes);
        expect_right(found, values, rounded, c.cols, rounds() ? chain : 2.0 * c.cols, &before, /*more=*/16 * kUnit + kDivisionError);
    }
}

// Random x: each is moved by half a step at most, and by what even rounding moves it on average.
TEST_P(Int8Formats, lose_what_rounding_loses) {
    const QuantCase c = GetParam();
    constexpr uint32_t kRows = 16;
    std::vector<float> values;
    const Tensor weight = weights(values, c);
    const std::vector<float> x = random_floats(kRows * c.cols, 46, 3.0f), found = multiply(kernels(Variant::int8), kMatvec, weight, x);
    const std::vector<double> half = half_steps(x);
    double lost = 0, expected_loss = 0;
    for (uint32_t r = 0; r < kRows; ++r)
        for (uint32_t o = 0; o < kOut; ++o) {
            double exact = 0, most = 0, size = 0, variance = 0;
            for (uint32_t i = 0; i < c.cols; ++i) {
                const double w = values[o * c.cols + i], h = half[r * c.cols + i];
                exact += w * x[r * c.cols + i];
                size += std::abs(w * x[r * c.cols + i]);
                most += std::abs(w) * h;
                variance += w * w * h * h / 3;
            }
            const double error = found[r * kOut + o] - exact;
            EXPECT_LE(std::abs(error), (rounds() ? 1.001 * most : 0) + rounding(3.0 * c.cols) * size) << "row " << r << ", output " << o;
            lost += error * error;
            expected_loss += variance;
        }
    // Outputs share the losses of a row's x, so these are 16 samples where weights have a mean: a standard deviation of sqrt(2 / 16) at
    // most. Codes of 7 bits, or cut off instead of rounded, would lose 4 times as much.
    if (rounds()) {
        EXPECT_GT(lost, 0.5 * expected_loss);
        EXPECT_LT(lost, 2.0 * expected_loss);
    }
}

INSTANTIATE_TEST_SUITE_P(, Int8Formats, ::testing::ValuesIn(kQuantCases), quant_case_name);

TEST_F(Int8, rows_have_the_same_bits_in_any_company_and_in_any_size) {
    for (const QuantCase c : {QuantCase{DType::q4_0, 352}, {DType::q6_k, 768}}) {
        std::vector<float> values;
        const Tensor weight = weights(values, c);
        const std::vector<float> x = random_floats(17 * c.cols, 47);
        std::vector<float> alone;
        for (uint32_t r = 0; r < 17; ++r) {
            const std::vector<float> y = multiply(kernels(Variant::int8), kMatvec, weight, std::span(x).subspan(r * c.cols, c.cols));
            alone.insert(alone.end(), y.begin(), y.end());
        }
        struct Size {
            uint32_t ahead, teams, outs; // few outputs, or it would ask for fewer steps
        };
        // Of the last, shared memory has no room for 8 rows, as with 64 lanes: these are rounded, too.
        for (const Size size : {Size{1, 1, 2}, {2, 1, 2}, {4, 1, 2}, {1, 4, 2}, {2, 4, 2}, {4, 4, 2}, {1, 256 / kernels(Variant::int8).tuning().lanes, 16}}) {
            Tuning tuning = kernels(Variant::int8).tuning();
            tuning.matvec_outs = tuning.matvec_many_outs = size.outs;
            tuning.matvec_ahead = tuning.matvec_many_ahead = size.ahead;
            tuning.matvec_sums = 8 * 16; // 8 rows with as many outputs as the last size has
            tuning.matvec_teams = size.teams;
            auto library = KernelLibrary::create(device(), tuning, "");
            ASSERT_TRUE(library.ok());
            for (const uint32_t n : {1u, 2u, 5u, 17u})
                EXPECT_TRUE(same_bits(multiply(*library.value(), kMatvec, weight, std::span(x).first(n * c.cols)), std::span(alone).first(n * kOut)))
                    << dtype_name(c.dtype) << ", " << n << " rows, " << size.ahead << " at once, " << size.teams << " teams, " << size.outs << " outputs";
        }
    }
}

// Through an RMSNorm x is rounded once it is multiplied with the norm's weights; the norm itself is of x before that.
TEST_F(Int8, norms_are_of_x_as_it_was) {
    constexpr uint32_t kCols = 352, kRows = 5;
    std::vector<float> values;
    const Tensor weight = weights(values, {DType::q4_0, kCols});
    const std::vector<float> x = random_floats(kRows * kCols, 48, 3.0f);
    const Normed in = normed(x, kCols);
    std::vector<std::vector<float>> found;
    for (const bool as_stage : {false, true}) {
        const Buffer y = output<float>(kRows * kOut), prenormed = output<float>(kRows * weight.padded_cols), scales = output<float>(kRows);
        run(kernels(Variant::int8), [&](Recorder& to) {
            NormedRows rows = in.rows;
            if (as_stage) {
                rows = record_prenorm(to, weight, rows, prenormed.view(), scales.view());
                to.cmd.barrier();
            }
            record_normed_matvec(to, weight, rows, y.view(), kOut);
        });
        found.push_back(floats(y, kRows * kOut));
    }
    for (uint32_t r = 0; r < kRows; ++r) {
        std::vector<float> product(kCols);
        double squares = 0;
        for (uint32_t i = 0; i < kCols; ++i) {
            product[i] = x[r * kCols + i] * in.norm_weights[i];
            squares += double(x[r * kCols + i]) * x[r * kCols + i];
        }
        const std::vector<double> half = half_steps(product);
        const double scale = 1 / std::sqrt(squares / kCols + 1e-5f);
        for (uint32_t o = 0; o < kOut; ++o) {
            double exact = 0, most = 0, size = 0;
            for (uint32_t i = 0; i < kCols; ++i) {
                exact += double(values[o * kCols + i]) * product[i];
                most += std::abs(values[o * kCols + i]) * half[i];
                size += std::abs(double(values[o * kCols + i]) * product[i]);
            }
            const double f32 = rounding(3.0 * kCols) * size * scale;
            EXPECT_LE(std::abs(found[0][r * kOut + o] - exact * scale), (rounds() ? 1.001 * most * scale : 0) + f32) << "row " << r << ", output " << o;
            EXPECT_LE(std::abs(found[0][r * kOut + o] - found[1][r * kOut + o]), f32) << "row " << r << ", output " << o; // codes are the same
        }
    }
}

// What is not to be drafted is not rounded.
TEST_F(Int8, only_drafts_are_rounded) {
    constexpr uint32_t kCols = 352;
    std::vector<float> values;
    const Tensor weight = weights(values, {DType::q4_0, kCols});
    const std::vector<float> x = random_floats(2 * kCols, 49);
    const RecordLinear no_draft = [](Recorder& to, auto&&... args) {
        to.int8_x = false;
        record_matvec(to, args...);
    };
    const std::vector<float> shuffles = multiply(kernels(Variant::shuffles), kMatvec, weight, x);
    EXPECT_TRUE(same_bits(multiply(kernels(Variant::int8), no_draft, weight, x), shuffles));
    if (rounds()) { EXPECT_FALSE(same_bits(multiply(kernels(Variant::int8), kMatvec, weight, x), shuffles)); }
    std::vector<float> plain = random_floats(kOut * kCols, 50);
    const Tensor numbers = tensor(plain, kOut, kCols, DType::bf16);
    EXPECT_TRUE(same_bits(multiply(kernels(Variant::int8), kMatvec, numbers, x), multiply(kernels(Variant::shuffles), kMatvec, numbers, x)));
}

// Blocks of zeros, and numbers that are none, are where they were.
TEST_F(Int8, what_is_not_finite_stays_in_its_row) {
    constexpr uint32_t kCols = 352;
    std::vector<float> values;
    const Tensor weight = weights(values, {DType::q4_0, kCols});
    std::vector<float> x(3 * kCols, 0.0f);
    std::fill_n(x.begin() + kCols, kCols, 1.0f);
    x[kCols + 70] = INFINITY;
    const std::vector<float> found = multiply(kernels(Variant::int8), kMatvec, weight, x);
    for (uint32_t o = 0; o < kOut; ++o) {
        EXPECT_EQ(found[o], 0.0f);
        EXPECT_FALSE(std::isfinite(found[kOut + o]));
        EXPECT_EQ(found[2 * kOut + o], 0.0f);
    }
}

} // namespace
} // namespace auspex::int8_test
