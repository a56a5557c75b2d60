// The norm as a stage of its own: right by itself, and members of the row family after it have the bits of those that norm by
// themselves. (gate_up_test and qkv_test hold those two to it.)
#include "kernels/prenorm.h"
#include "kernels/linear.h"

namespace auspex::prenorm_test {
namespace {

class Prenorm : public LinearTest, public ::testing::WithParamInterface<Variant> {
  protected:
    // Rows 1, 3, … of twice as many, as a head takes some of a pass.
    Normed every_second_row(uint32_t n_rows, uint32_t cols) {
        Normed in = normed(random_floats(size_t{2} * n_rows * cols, n_rows + cols), cols);
        in.rows.n_rows = n_rows;
        in.rows.first_row = 1;
        in.rows.row_step = 2;
        return in;
    }

    void expect_bits_of_a_member_that_norms(const Tensor& weight, uint32_t n_rows) {
        SCOPED_TRACE(std::string(dtype_name(weight.dtype)) + ", " + std::to_string(n_rows) + " rows");
        const Normed in = every_second_row(n_rows, weight.cols);
        const Buffer normed = output<float>(size_t{n_rows} * weight.padded_cols), scales = output<float>(n_rows),
                     after = output<float>(size_t{n_rows} * weight.rows), within = output<float>(size_t{n_rows} * weight.rows);
        run(kernels(GetParam()), [&](Recorder& to) {
            const NormedRows prepared = record_prenorm(to, weight, in.rows, normed.view(), scales.view());
            to.cmd.barrier();
            record_normed_matvec(to, weight, prepared, after.view(), weight.rows);
            record_normed_matvec(to, weight, in.rows, within.view(), weight.rows);
        });
        EXPECT_TRUE(same_bits(floats(after, size_t{n_rows} * weight.rows), floats(within, size_t{n_rows} * weight.rows)));
    }
};

TEST_P(Prenorm, multiplies_with_the_weights_and_finds_the_scales) {
    constexpr uint32_t kRows = 5;
    for (uint32_t cols : {1u, 7u, 64u, 301u, 1234u}) {
        SCOPED_TRACE(cols);
        const uint32_t stride = padded_width(cols);
        const Normed in = every_second_row(kRows, cols);
        std::vector<float> zeros(cols, 0.0f);
        const Tensor weight = tensor(zeros, 1, cols, DType::f32, 0);
        const Buffer y = output<float>(size_t{kRows} * stride + 1), scales = output<float>(kRows + 1);
        run(kernels(GetParam()), [&](Recorder& to) { record_prenorm(to, weight, in.rows, y.view(), scales.view()); });
        const std::vector<float> found = floats(y, size_t{kRows} * stride + 1), scale = floats(scales, kRows + 1);
        const std::vector<float> x = floats(in.x, size_t{2} * kRows * stride);
        for (uint32_t r = 0; r < kRows; ++r) {
            const float* row = &x[size_t{2 * r + 1} * stride];
            std::vector<float> products(stride, 0.0f);
            double squares = 0;
            for (uint32_t i = 0; i < cols; ++i) {
                products[i] = row[i] * in.norm_weights[i];
                squares += double{row[i]} * row[i];
            }
            EXPECT_TRUE(same_bits({&found[size_t{r} * stride], stride}, products)) << "row " << r;
            const double expected = 1.0 / std::sqrt(squares / cols + double{in.rows.eps});
            EXPECT_NEAR(scale[r], expected, expected * (rounding(2.0 * cols + 1.0) / 2.0 + 3.0 * kDivisionError + rounding(1))) << "row " << r;
        }
        EXPECT_EQ(std::bit_cast<uint32_t>(found.back()), kPoison) << "wrote past its rows";
        EXPECT_EQ(std::bit_cast<uint32_t>(scale.back()), kPoison) << "wrote past its scales";
    }
}

TEST_P(Prenorm, members_after_it_have_the_bits_of_those_that_norm) {
    std::vector<float> values = random_floats(size_t{37} * 301, 1);
    const Tensor plain = tensor(values, 37, 301, DType::bf16, 20);
    for (uint32_t n_rows : {1u, 3u, 17u}) expect_bits_of_a_member_that_norms(plain, n_rows);
    for (DType dtype : {DType::f16, DType::f32}) expect_bits_of_a_member_that_norms(tensor(values, 37, 301, dtype, 30), 3);
    std::vector<float> blocks = random_floats(size_t{37} * 768, 2);
    for (const QuantCase& c : {QuantCase{DType::q8_0, 352}, QuantCase{DType::q4_k, 768}})
        for (uint32_t n_rows : {1u, 4u}) expect_bits_of_a_member_that_norms(quantized_tensor(blocks, 37, c.cols, c.dtype, 3, 30), n_rows);
    std::vector<float> whole = random_floats(size_t{32} * 192, 3);
    expect_bits_of_a_member_that_norms(in_tiles(tensor(whole, 32, 192, DType::f16, 0)), 5);
}

INSTANTIATE_TEST_SUITE_P(, Prenorm, ::testing::Values(Variant::native, Variant::shuffles, Variant::shared, Variant::lanes_16, Variant::other_fetches),
                         [](const auto& i) { return variant_name(i.param); });

class PrenormBits : public LinearTest {};

TEST_F(PrenormBits, do_not_depend_on_how_lanes_exchange_or_fetch) {
    constexpr uint32_t kCols = 1336, kRows = 9;
    const Normed in = normed(random_floats(size_t{kRows} * kCols, 7), kCols);
    std::vector<float> zeros(kCols, 0.0f);
    const Tensor weight = tensor(zeros, 1, kCols, DType::f32, 0);
    std::vector<std::vector<float>> found;
    for (Variant variant : {Variant::native, Variant::shuffles, Variant::shared, Variant::other_fetches}) {
        const Buffer y = output<float>(size_t{kRows} * kCols), scales = output<float>(kRows);
        run(kernels(variant), [&](Recorder& to) { record_prenorm(to, weight, in.rows, y.view(), scales.view()); });
        found.push_back(floats(scales, kRows));
    }
    for (size_t i = 1; i < found.size(); ++i) EXPECT_TRUE(same_bits(found[0], found[i])) << i;
}

} // namespace
} // namespace auspex::prenorm_test
