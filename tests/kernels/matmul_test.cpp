// The prompt kernels: right in every format and size, and bitwise indifferent to how a prompt is cut into chunks.
#include "kernels/linear.h"

namespace auspex::matmul_test {
namespace {

struct Case {
    uint32_t n_out, cols;
    DType dtype;
    uint32_t n_rows, shard_rows;
    bool add;
};

const std::vector<Variant> kKernels = {Variant::native, Variant::tiles, Variant::matrices, Variant::matrices_1, Variant::halves};

// One f16 per activation and weight, both rounded to the nearest; else as good as f32. NVIDIA's matrix units cut off what they add
// instead of rounding it (Fasi, Higham, Mikaitis and Pranesh 2021, Numerical behavior of NVIDIA tensor cores), once per k of a tile.
double more_error(const Tuning& tuning, const DeviceCaps& caps, uint32_t cols) {
    const double halves = matmul_wants_halves(tuning) && tuning.matmul_parts == 1 ? 2.0 * 0x1p-12 : 0.0;
    const bool cuts = tuning.prompts_use_matrices() && caps.vendor_id == 0x10de;
    return halves + (cuts ? std::ceil(double(cols) / tuning.matrix.k) * 0x1p-23 : 0.0);
}

class Matmul : public LinearTest, public ::testing::WithParamInterface<std::tuple<Variant, Case>> {};

TEST_P(Matmul, agrees_with_the_reference) {
    const auto& [variant, c] = GetParam();
    std::vector<float> values = random_floats(size_t{c.n_out} * c.cols, 1),
                       x = random_floats(size_t{c.n_rows} * c.cols, 2);
    const std::vector<float> before = random_floats(size_t{c.n_rows} * c.n_out, 3);
    const Tensor weight = tensor(values, c.n_out, c.cols, c.dtype, c.shard_rows);
    const std::vector<float> found = multiply(kernels(variant), kMatmul, weight, x, c.add ? &before : nullptr);
    expect_right(found, values, x, c.cols, 2.0 * padded_width(c.cols), c.add ? &before : nullptr, // one walk over k
                 more_error(kernels(variant).tuning(), device().caps, c.cols));
}

INSTANTIATE_TEST_SUITE_P(, Matmul,
                         ::testing::Combine(::testing::ValuesIn(kKernels),
                                            ::testing::Values(Case{1, 1, DType::bf16, 1, 0, false}, Case{7, 33, DType::bf16, 33, 0, false},
                                                              Case{33, 7, DType::bf16, 7, 10, false},
                                                              Case{1234, 33, DType::bf16, 7, 1000, false},
                                                              Case{33, 1234, DType::bf16, 40, 0, true},
                                                              Case{33, 301, DType::f16, 17, 0, false},
                                                              Case{33, 301, DType::f32, 17, 5, true},
                                                              Case{200, 1234, DType::f32, 150, 70, false},
                                                              Case{200, 1234, DType::f16, 150, 130, true})),
                         [](const auto& i) {
                             const Case& c = std::get<1>(i.param);
                             return variant_name(std::get<0>(i.param)) + "_" + std::to_string(c.n_out) + "x" + std::to_string(c.cols) + "_" +
                                    std::string(dtype_name(c.dtype)) + "_" + std::to_string(c.n_rows);
                         });

// Rows at every place of a tile, in chunks of every kind: beginning inside a tile, at its edge, one tile and a bit.
class MatmulChunks : public LinearTest, public ::testing::WithParamInterface<Variant> {};

TEST_P(MatmulChunks, leave_every_row_its_bits) {
    constexpr uint32_t kOut = 137, kCols = 301, kRows = 144;
    for (const DType dtype : {DType::bf16, DType::f32}) {
        std::vector<float> values = random_floats(kOut * kCols, 4);
        const Tensor weight = tensor(values, kOut, kCols, dtype, 80);
        const std::vector<float> x = random_floats(kRows * kCols, 5);
        const std::vector<float> whole = multiply(kernels(GetParam()), kMatmul, weight, x);
        for (const std::vector<uint32_t>& sizes :
             {std::vector<uint32_t>{1, 1, 1}, {40, 104}, {17, 127}, {65, 64, 15}, {7, 8, 9, 10, 11, 12, 15}}) {
            uint32_t from = 0;
            for (uint32_t n : sizes) {
                const std::vector<float> part =
                    multiply(kernels(GetParam()), kMatmul, weight, std::span(x).subspan(from * kCols, n * kCols));
                EXPECT_TRUE(same_bits(part, std::span(whole).subspan(from * kOut, n * kOut)))
                    << n << " rows from " << from;
                from += n;
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(, MatmulChunks, ::testing::ValuesIn(kKernels), [](const auto& i) { return variant_name(i.param); });

// Each output is the same sum, whatever tile timing chooses.
TEST_P(MatmulChunks, are_the_same_whatever_a_subgroup_computes) {
    constexpr uint32_t kOut = 137, kRows = 144;
    Tuning tuning = kernels(GetParam()).tuning();
    std::vector<MatrixTile> tiles = matrix_tile_choices(tuning, device().caps);
    tiles.push_back({16, 16}); // a CPU's
    tuning.matrix_least_groups = 0; // these, and no smaller ones
    if (tuning.prompts_use_matrices()) {
        EXPECT_GE(tiles.size(), 4u);
    }
    for (const DType dtype : {DType::bf16, DType::f32, DType::q4_0}) {
        const uint32_t cols = dtype == DType::q4_0 ? 352 : 301; // the last slab is whole, or not
        std::vector<float> values = random_floats(kOut * cols, 4);
        const Tensor weight = dtype == DType::q4_0 ? quantized_tensor(values, kOut, cols, dtype, 40, 40) : tensor(values, kOut, cols, dtype, 80);
        const std::vector<float> x = random_floats(kRows * cols, 5), native = multiply(kernels(GetParam()), kMatmul, weight, x);
        for (const MatrixTile& tile : tiles) {
            tuning.matrix_rows = tile.rows;
            tuning.matrix_outs = tile.outs;
            tuning.matrix_blocks = tile.blocks;
            auto library = KernelLibrary::create(device(), tuning, "");
            ASSERT_TRUE(library.ok());
            EXPECT_TRUE(same_bits(multiply(*library.value(), kMatmul, weight, x), native)) << dtype_name(dtype) << ", " << tile.rows << " x " << tile.outs;
        }
    }
}

// What lies beyond a row's end in the last slab of k is zero on both sides: an infinity there is not met once more.
TEST_P(MatmulChunks, multiply_nothing_beyond_a_rows_end) {
    constexpr uint32_t kOut = 70, kCols = 40, kRows = 3; // a slab and a quarter
    const Tuning& tuning = kernels(GetParam()).tuning();
    if (tuning.prompts_use_matrices()) return; // several parts of an infinity are no number
    std::vector<float> values(size_t{kOut} * kCols, 0.5f), x(size_t{kRows} * kCols, 0.25f);
    if (tuning.matmul_parts == 0) x.back() = INFINITY;
    for (const DType dtype : {DType::bf16, DType::f32}) {
        const std::vector<float> found = multiply(kernels(GetParam()), kMatmul, tensor(values, kOut, kCols, dtype, 0), x);
        for (uint32_t i = 0; i < kRows * kOut; ++i) EXPECT_EQ(found[i], tuning.matmul_parts == 0 && i / kOut == kRows - 1 ? INFINITY : 5.0f) << i;
        std::vector<float> infinite = values;
        infinite.back() = INFINITY; // of the last output
        const std::vector<float> other = multiply(kernels(GetParam()), kMatmul, tensor(infinite, kOut, kCols, dtype, 0), x);
        for (uint32_t r = 0; r < kRows; ++r) EXPECT_EQ(other[r * kOut + kOut - 1], INFINITY) << r;
    }
}

// The last slab of k may lie half beyond a row's end, where the next row begins.
TEST_P(MatmulChunks, keep_apart_from_the_weights_of_other_outputs) {
    constexpr uint32_t kOut = 5, kCols = 301, kRows = 3;
    for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
        std::vector<float> values = random_floats(kOut * kCols, 4);
        const std::vector<float> x = random_floats(kRows * kCols, 5);
        const std::vector<float> expected = multiply(kernels(GetParam()), kMatmul, tensor(values, kOut, kCols, dtype), x);
        for (const uint32_t bad : {1u, 3u}) std::fill_n(&values[bad * kCols], kCols, INFINITY);
        const std::vector<float> found = multiply(kernels(GetParam()), kMatmul, tensor(values, kOut, kCols, dtype), x);
        for (uint32_t i = 0; i < kRows * kOut; ++i) {
            if (i % kOut % 2 == 0) EXPECT_TRUE(same_bits(std::span(found).subspan(i, 1), std::span(expected).subspan(i, 1))) << dtype_name(dtype);
            else EXPECT_FALSE(std::isfinite(found[i])) << dtype_name(dtype);
        }
    }
}

class MatmulQuantized : public LinearTest, public ::testing::WithParamInterface<std::tuple<Variant, QuantCase>> {};

TEST_P(MatmulQuantized, agrees_with_the_reference_in_any_chunks) {
    const auto [variant, quant] = GetParam();
    const auto [dtype, cols] = quant;
    constexpr uint32_t kOut = 67, kRows = 70;
    std::vector<float> values;
    const Tensor weight = quantized_tensor(values, kOut, cols, dtype, 40, 40);
    const std::vector<float> x = random_floats(size_t{kRows} * cols, 41);
    const std::vector<float> whole = multiply(kernels(variant), kMatmul, weight, x);
    expect_right(whole, values, x, cols, 2.0 * cols, nullptr, more_error(kernels(variant).tuning(), device().caps, cols));
    uint32_t from = 0;
    for (uint32_t n : {1u, 16u, 53u}) {
        const std::vector<float> part = multiply(kernels(variant), kMatmul, weight, std::span(x).subspan(size_t{from} * cols, size_t{n} * cols));
        EXPECT_TRUE(same_bits(part, std::span(whole).subspan(size_t{from} * kOut, size_t{n} * kOut))) << n << " rows";
        from += n;
    }
}

INSTANTIATE_TEST_SUITE_P(, MatmulQuantized, ::testing::Combine(::testing::ValuesIn(kKernels), ::testing::ValuesIn(kQuantCases)),
                         [](const auto& i) {
                             return variant_name(std::get<0>(i.param)) + "_" + std::string(dtype_name(std::get<1>(i.param).dtype));
                         });

} // namespace
} // namespace auspex::matmul_test
