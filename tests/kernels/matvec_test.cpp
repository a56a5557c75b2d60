// The row family: right in every format and size, and bitwise indifferent to how many rows share the pass.
#include "kernels/linear.h"

namespace auspex::matvec_test {
namespace {

struct Case {
    uint32_t n_out, cols;
    DType dtype;
    uint32_t n_rows, shard_rows;
    bool add;
    Variant variant;
};

// Longest way of a product to the sum: its lane's share, fma as two roundings, then the tree.
double chain(const Tuning& tuning, uint32_t cols, uint32_t step = 8) {
    const uint32_t steps = (cols + step - 1) / step;
    return 2.0 * step * ((steps + tuning.lanes - 1) / tuning.lanes) + std::log2(tuning.lanes);
}

class Matvec : public LinearTest, public ::testing::WithParamInterface<Case> {};

TEST_P(Matvec, agrees_with_the_reference) {
    const Case c = GetParam();
    std::vector<float> values = random_floats(size_t{c.n_out} * c.cols, 1),
                       x = random_floats(size_t{c.n_rows} * c.cols, 2);
    const std::vector<float> before = random_floats(size_t{c.n_rows} * c.n_out, 3);
    const Tensor weight = tensor(values, c.n_out, c.cols, c.dtype, c.shard_rows);
    KernelLibrary& library = kernels(c.variant);
    const std::vector<float> found = multiply(library, kMatvec, weight, x, c.add ? &before : nullptr);
    expect_right(found, values, x, c.cols, chain(library.tuning(), c.cols), c.add ? &before : nullptr);
}

constexpr Variant kNative = Variant::native;
INSTANTIATE_TEST_SUITE_P(
    , Matvec,
    ::testing::Values(Case{1, 1, DType::bf16, 1, 0, false, kNative}, Case{7, 33, DType::bf16, 1, 0, false, kNative},
                      Case{33, 7, DType::bf16, 3, 0, false, kNative}, Case{1234, 33, DType::bf16, 5, 0, false, kNative},
                      Case{33, 1234, DType::bf16, 17, 0, false, kNative},
                      Case{1234, 1234, DType::bf16, 1, 1000, false, kNative},
                      Case{33, 1234, DType::bf16, 5, 10, true, kNative}, Case{7, 64, DType::bf16, 1, 1, true, kNative},
                      Case{33, 1234, DType::f16, 1, 0, false, kNative}, Case{33, 77, DType::f16, 5, 7, false, kNative},
                      Case{33, 1234, DType::f32, 1, 0, false, kNative}, Case{33, 77, DType::f32, 5, 7, false, kNative},
                      Case{33, 1234, DType::bf16, 1, 0, false, Variant::shuffles},
                      Case{7, 33, DType::f16, 3, 5, true, Variant::shuffles},
                      Case{33, 1234, DType::bf16, 1, 0, false, Variant::shared},
                      Case{33, 1234, DType::bf16, 1, 0, false, Variant::lanes_16},
                      Case{33, 77, DType::bf16, 4, 0, false, Variant::lanes_16},
                      Case{33, 1234, DType::bf16, 1, 0, false, Variant::lanes_32},
                      Case{33, 77, DType::bf16, 4, 0, false, Variant::lanes_32}));

class MatvecRows : public LinearTest {
  protected:
    Buffer elsewhere_;

    void expect_invariant(DType dtype, const std::vector<uint32_t>& counts, Variant variant) {
        constexpr uint32_t kOut = 37, kCols = 301, kMost = 72;
        std::vector<float> values = random_floats(kOut * kCols, 4);
        const Tensor weight = tensor(values, kOut, kCols, dtype, 20);
        const std::vector<float> x = random_floats(kMost * kCols, 5), before = random_floats(kMost * kOut, 6);
        for (const bool add : {false, true}) {
            std::vector<float> alone;
            for (uint32_t r = 0; r < kMost; ++r) {
                const std::vector<float> start(&before[r * kOut], &before[r * kOut] + kOut);
                const std::vector<float> y = multiply(kernels(variant), kMatvec, weight,
                                                      std::span(x).subspan(r * kCols, kCols), add ? &start : nullptr);
                alone.insert(alone.end(), y.begin(), y.end());
            }
            for (uint32_t n : counts) {
                if (add && n % 5 != 0) continue; // adding is one more operation on the same sum: a few counts will do
                const std::vector<float> together =
                    multiply(kernels(variant), kMatvec, weight, std::span(x).first(n * kCols), add ? &before : nullptr);
                EXPECT_TRUE(same_bits(together, std::span(alone).first(size_t{n} * kOut))) << n << " rows, add " << add;
            }
        }
    }
};

TEST_F(MatvecRows, have_the_same_bits_in_any_company) {
    expect_invariant(DType::bf16, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 40, 72}, kNative);
}
TEST_F(MatvecRows, have_the_same_bits_in_any_company_f16) {
    expect_invariant(DType::f16, {2, 5, 16}, kNative);
}
TEST_F(MatvecRows, have_the_same_bits_in_any_company_f32) {
    expect_invariant(DType::f32, {2, 5, 16}, kNative);
}
TEST_F(MatvecRows, have_the_same_bits_through_shuffles) {
    expect_invariant(DType::bf16, {2, 5, 7, 16, 17}, Variant::shuffles);
}
TEST_F(MatvecRows, have_the_same_bits_through_shared_memory) {
    expect_invariant(DType::bf16, {3, 5}, Variant::shared);
}

TEST_F(MatvecRows, go_where_they_are_told) {
    constexpr uint32_t kOut = 7, kCols = 33, kFirst = 5, kStride = 20;
    std::vector<float> values = random_floats(kOut * kCols, 9);
    const Tensor weight = tensor(values, kOut, kCols, DType::bf16, 4);
    const std::vector<float> x = random_floats(2 * kCols, 10);
    const RecordLinear record = [&](Recorder& to, const Tensor& w, BufferView from, BufferView, uint32_t n_rows,
                                    uint32_t, bool) {
        record_matvec(to, w, from, elsewhere_.view(), n_rows, kStride, false, kFirst);
    };
    elsewhere_ = output<float>(kFirst + 2 * kStride);
    multiply(kernels(), record, weight, x);
    const std::vector<float> there = floats(elsewhere_, kFirst + 2 * kStride);
    const std::vector<float> plain = multiply(kernels(), kMatvec, weight, x);
    for (uint32_t r = 0; r < 2; ++r)
        EXPECT_TRUE(same_bits({&there[kFirst + r * kStride], kOut}, {&plain[r * kOut], kOut}));
    EXPECT_EQ(std::bit_cast<uint32_t>(there[kFirst - 1]), kPoison);
    EXPECT_EQ(std::bit_cast<uint32_t>(there[kFirst + kOut]), kPoison);
}

TEST_F(MatvecRows, do_not_depend_on_how_lanes_exchange_or_fetch) {
    constexpr uint32_t kOut = 37, kCols = 1234;
    std::vector<float> values = random_floats(kOut * kCols, 7);
    const std::vector<float> x = random_floats(3 * kCols, 8);
    for (DType dtype : {DType::bf16, DType::f16, DType::f32}) {
        const Tensor weight = tensor(values, kOut, kCols, dtype);
        const std::vector<float> native = multiply(kernels(), kMatvec, weight, x);
        for (Variant variant : {Variant::shuffles, Variant::shared, Variant::other_fetches})
            EXPECT_TRUE(same_bits(multiply(kernels(variant), kMatvec, weight, x), native)) << variant_name(variant);
    }
}

// Through an RMSNorm: x in twice the rows, of which every second counts.
class MatvecNormed : public LinearTest, public ::testing::WithParamInterface<Variant> {
  protected:
    static constexpr uint32_t kOut = 37;
    std::vector<float> run_normed(KernelLibrary& library, const Tensor& weight, std::span<const float> x, uint32_t step = 1) {
        Normed in = normed(x, weight.cols);
        in.rows.n_rows /= step;
        in.rows.row_step = step;
        in.rows.first_row = step - 1;
        const Buffer y = output<float>(size_t{in.rows.n_rows} * kOut);
        run(library, [&](Recorder& to) { record_normed_matvec(to, weight, in.rows, y.view(), kOut); });
        return floats(y, size_t{in.rows.n_rows} * kOut);
    }
    void expect_normed(KernelLibrary& library, const Tensor& weight, const std::vector<float>& values, uint32_t n_rows, double steps) {
        const uint32_t cols = weight.cols;
        const std::vector<float> x = random_floats(size_t{2} * n_rows * cols, 31, 3.0f), found = run_normed(library, weight, x, 2);
        const std::vector<float> norm_weights = normed(x, cols).norm_weights;
        std::vector<float> sizes(values);
        for (float& w : sizes) w = std::abs(w);
        reference::Vector expected, bound;
        for (uint32_t r = 0; r < n_rows; ++r) {
            const float* from = &x[size_t{2 * r + 1} * cols];
            reference::Vector row = reference::rmsnorm({from, from + cols}, norm_weights, double(1e-5f)), size;
            for (double v : row) size.push_back(std::abs(v));
            const reference::Vector y = reference::matvec(values, row), most = reference::matvec(sizes, size);
            expected.insert(expected.end(), y.begin(), y.end());
            // The chain of the product, that of the mean of squares (halved by the root), a square root, two divisions and two products.
            for (double m : most) bound.push_back((rounding(1.5 * steps + 6) + 2 * kDivisionError + 4 * kUnit) * m + cols * kTiny);
        }
        EXPECT_TRUE(all_near(found, expected, bound));
        EXPECT_LT(normalised_error(found, expected), kNormalisedError);
    }
};

TEST_P(MatvecNormed, agrees_with_the_reference) {
    KernelLibrary& library = kernels(GetParam());
    for (uint32_t cols : {7u, 301u, 1234u}) {
        std::vector<float> values = random_floats(size_t{kOut} * cols, 30);
        const Tensor weight = tensor(values, kOut, cols, DType::bf16, 20);
        for (uint32_t n_rows : {1u, 5u}) expect_normed(library, weight, values, n_rows, chain(library.tuning(), cols));
    }
}
TEST_P(MatvecNormed, agrees_with_the_reference_in_block_formats) {
    KernelLibrary& library = kernels(GetParam());
    for (const DType dtype : {DType::q4_0, DType::q6_k}) {
        const uint32_t cols = dtype == DType::q4_0 ? 352 : 768;
        std::vector<float> values;
        const Tensor weight = quantized_tensor(values, kOut, cols, dtype, 33, 20);
        expect_normed(library, weight, values, 3, chain(library.tuning(), cols, 32));
    }
}
TEST_P(MatvecNormed, rows_have_the_same_bits_in_any_company) {
    constexpr uint32_t kCols = 301;
    std::vector<float> values = random_floats(kOut * kCols, 34);
    const Tensor weight = tensor(values, kOut, kCols, DType::bf16, 20);
    const std::vector<float> x = random_floats(17 * kCols, 35);
    std::vector<float> alone;
    for (uint32_t r = 0; r < 17; ++r) {
        const std::vector<float> y = run_normed(kernels(GetParam()), weight, std::span(x).subspan(r * kCols, kCols));
        alone.insert(alone.end(), y.begin(), y.end());
    }
    for (uint32_t n : GetParam() == kNative ? std::vector<uint32_t>{2, 3, 4, 5, 6, 7, 8, 12, 16, 17} : std::vector<uint32_t>{2, 5, 17})
        EXPECT_TRUE(same_bits(run_normed(kernels(GetParam()), weight, std::span(x).first(n * kCols)), std::span(alone).first(n * kOut))) << n << " rows";
}
TEST_F(MatvecRows, through_a_norm_do_not_depend_on_how_lanes_exchange_or_fetch) {
    constexpr uint32_t kOut = 37, kCols = 301;
    std::vector<float> values = random_floats(kOut * kCols, 36);
    const Tensor weight = tensor(values, kOut, kCols, DType::bf16);
    const Normed in = normed(random_floats(3 * kCols, 37), kCols);
    std::vector<std::vector<float>> found;
    for (Variant variant : {kNative, Variant::shuffles, Variant::shared, Variant::other_fetches}) {
        const Buffer y = output<float>(3 * kOut);
        run(kernels(variant), [&](Recorder& to) { record_normed_matvec(to, weight, in.rows, y.view(), kOut); });
        found.push_back(floats(y, 3 * kOut));
    }
    EXPECT_TRUE(same_bits(found[1], found[0]));
    EXPECT_TRUE(same_bits(found[2], found[0]));
    EXPECT_TRUE(same_bits(found[3], found[0]));
}

// Rows whose last steps not every lane has.
TEST_F(MatvecRows, do_not_depend_on_how_many_steps_are_asked_for_at_once) {
    constexpr uint32_t kOut = 37;
    for (const auto& [dtype, cols] : {std::pair{DType::bf16, 1234u}, {DType::q6_k, 768u}, {DType::q4_0, 352u}}) {
        std::vector<float> values = random_floats(size_t{kOut} * cols, 38);
        const Tensor weight = is_quantized(dtype) ? quantized_tensor(values, kOut, cols, dtype, 38) : tensor(values, kOut, cols, dtype);
        for (const uint32_t n_rows : {1u, 3u}) {
            const std::vector<float> x = random_floats(n_rows * cols, 39);
            const Normed in = normed(x, cols);
            std::vector<float> plain, through_norm;
            for (uint32_t ahead = 1; ahead <= 4; ++ahead) {
                SCOPED_TRACE(std::string(dtype_name(dtype)) + ", " + std::to_string(n_rows) + " rows, " + std::to_string(ahead) + " at once");
                Tuning tuning = kernels(Variant::shuffles).tuning();
                tuning.matvec_outs = tuning.matvec_many_outs = 2; // few, or it would ask for fewer steps
                tuning.matvec_ahead = tuning.matvec_many_ahead = ahead;
                auto library = KernelLibrary::create(device(), tuning, "");
                ASSERT_TRUE(library.ok());
                const std::vector<float> y = multiply(*library.value(), kMatvec, weight, x);
                const Buffer z = output<float>(n_rows * kOut);
                run(*library.value(), [&](Recorder& to) { record_normed_matvec(to, weight, in.rows, z.view(), kOut); });
                if (ahead == 1) plain = y, through_norm = floats(z, n_rows * kOut);
                EXPECT_TRUE(same_bits(y, plain));
                EXPECT_TRUE(same_bits(floats(z, n_rows * kOut), through_norm));
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(, MatvecNormed, ::testing::Values(kNative, Variant::shuffles, Variant::shared, Variant::lanes_16, Variant::lanes_32),
                         [](const auto& i) { return variant_name(i.param); });

class MatvecQuantized : public LinearTest, public ::testing::WithParamInterface<QuantCase> {
  protected:
    static constexpr uint32_t kOut = 37, kShard = 20;
    // Between them, all widths of codes and all kinds of scales.
    static bool covers_the_decoders(DType dtype) {
        return dtype == DType::q8_0 || dtype == DType::q5_1 || dtype == DType::q2_k || dtype == DType::q4_k || dtype == DType::q6_k;
    }
};

TEST_P(MatvecQuantized, agrees_with_the_reference_for_any_number_of_rows) {
    const auto [dtype, cols] = GetParam();
    std::vector<float> values;
    const Tensor weight = quantized_tensor(values, kOut, cols, dtype, 20, kShard);
    KernelLibrary& library = kernels();
    for (uint32_t n_rows = 1; n_rows <= 16; ++n_rows) {
        const std::vector<float> x = random_floats(size_t{n_rows} * cols, 21), before = random_floats(size_t{n_rows} * kOut, 22);
        const bool add = n_rows % 2 == 0;
        expect_right(multiply(library, kMatvec, weight, x, add ? &before : nullptr), values, x, cols,
                     chain(library.tuning(), cols, 32), add ? &before : nullptr);
    }
}

TEST_P(MatvecQuantized, agrees_with_the_reference_in_every_variant) {
    const auto [dtype, cols] = GetParam();
    std::vector<float> values;
    const Tensor weight = quantized_tensor(values, kOut, cols, dtype, 23);
    const std::vector<float> x = random_floats(3 * cols, 24);
    const std::vector<float> native = multiply(kernels(), kMatvec, weight, x);
    for (Variant variant : all_variants()) {
        if (variant != kNative && !covers_the_decoders(dtype)) continue;
        KernelLibrary& library = kernels(variant);
        expect_right(multiply(library, kMatvec, weight, x), values, x, cols, chain(library.tuning(), cols, 32));
    }
    for (Variant variant : {Variant::shuffles, Variant::shared, Variant::other_fetches}) {
        if (!covers_the_decoders(dtype)) continue;
        EXPECT_TRUE(same_bits(multiply(kernels(variant), kMatvec, weight, x), native)) << variant_name(variant);
    }
}

TEST_P(MatvecQuantized, has_the_same_bits_in_any_company) {
    const auto [dtype, cols] = GetParam();
    constexpr uint32_t kMost = 40;
    std::vector<float> values;
    const Tensor weight = quantized_tensor(values, kOut, cols, dtype, 25, kShard);
    const std::vector<float> x = random_floats(size_t{kMost} * cols, 26);
    for (Variant variant : {kNative, Variant::shuffles}) {
        if (variant != kNative && !covers_the_decoders(dtype)) continue;
        std::vector<float> alone;
        for (uint32_t r = 0; r < kMost; ++r) {
            const std::vector<float> y = multiply(kernels(variant), kMatvec, weight, std::span(x).subspan(size_t{r} * cols, cols));
            alone.insert(alone.end(), y.begin(), y.end());
        }
        for (uint32_t n : {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 40}) {
            if (variant != kNative && n % 4 != 0) continue;
            const std::vector<float> together = multiply(kernels(variant), kMatvec, weight, std::span(x).first(size_t{n} * cols));
            EXPECT_TRUE(same_bits(together, std::span(alone).first(size_t{n} * kOut))) << n << " rows";
        }
    }
}

INSTANTIATE_TEST_SUITE_P(, MatvecQuantized, ::testing::ValuesIn(kQuantCases), quant_case_name);

} // namespace
} // namespace auspex::matvec_test
