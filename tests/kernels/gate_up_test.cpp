// The fused first half of the feed-forward has the bits of its parts, which have tests of their own against the reference; whether it
// norms by itself or not.
#include "kernels/gate_up.h"
#include "kernels/linear.h"
#include "kernels/prenorm.h"
#include "kernels/swiglu.h"

namespace auspex::gate_up_test {
namespace {

class GateUp : public LinearTest, public ::testing::WithParamInterface<Variant> {
  protected:
    static constexpr uint32_t kWidth = 37, kStride = 40;

    void expect_bits_of_the_parts(const Tensor& weight, uint32_t n_rows, bool after_norm = false) {
        SCOPED_TRACE(std::string(dtype_name(weight.dtype)) + ", " + std::to_string(n_rows) + " rows" + (after_norm ? " after a norm" : ""));
        const Normed in = normed(random_floats(size_t{n_rows} * weight.cols, n_rows), weight.cols);
        const Buffer fused = output<float>(n_rows * kStride + 1), gate_up = output<float>(n_rows * 2 * kWidth),
                     apart = output<float>(n_rows * kStride),
                     prenormed = output<float>(n_rows * weight.padded_cols), scales = output<float>(n_rows);
        run(kernels(GetParam()), [&](Recorder& to) {
            NormedRows rows = in.rows;
            if (after_norm) {
                rows = record_prenorm(to, weight, in.rows, prenormed.view(), scales.view());
                to.cmd.barrier();
            }
            record_gate_up(to, weight, rows, fused.view(), kStride);
            record_normed_matvec(to, weight, GetParam() == Variant::int8 ? rows : in.rows, gate_up.view(), 2 * kWidth);
            to.cmd.barrier();
            record_swiglu(to, gate_up.view(), apart.view(), n_rows, kWidth, true);
        });
        const std::vector<float> found = floats(fused, n_rows * kStride + 1), expected = floats(apart, n_rows * kStride);
        for (uint32_t r = 0; r < n_rows; ++r) {
            EXPECT_TRUE(same_bits({&found[r * kStride], kWidth}, {&expected[r * kStride], kWidth})) << "row " << r;
            EXPECT_EQ(std::bit_cast<uint32_t>(found[r * kStride + kWidth]), kPoison) << "wrote beside its columns";
        }
        EXPECT_EQ(std::bit_cast<uint32_t>(found[n_rows * kStride]), kPoison) << "wrote past its rows";
    }
};

TEST_P(GateUp, has_the_bits_of_its_parts) {
    std::vector<float> values = random_floats(size_t{2} * kWidth * 301, 1);
    const Tensor weight = tensor(values, 2 * kWidth, 301, DType::bf16, 20);
    for (uint32_t n_rows : {1u, 2u, 3u, 5u, 8u, 16u, 17u}) expect_bits_of_the_parts(weight, n_rows);
    expect_bits_of_the_parts(weight, 5, /*after_norm=*/true);
}
TEST_P(GateUp, has_the_bits_of_its_parts_in_other_formats) {
    std::vector<float> values = random_floats(size_t{2} * kWidth * 301, 2);
    for (DType dtype : {DType::f16, DType::f32}) expect_bits_of_the_parts(tensor(values, 2 * kWidth, 301, dtype, 30), 3);
    for (DType dtype : {DType::q8_0, DType::q4_k}) {
        const Tensor weight = quantized_tensor(values, 2 * kWidth, dtype == DType::q8_0 ? 352 : 768, dtype, 3, 30);
        for (uint32_t n_rows : {1u, 4u, 9u}) expect_bits_of_the_parts(weight, n_rows);
        expect_bits_of_the_parts(weight, 4, /*after_norm=*/true);
    }
}
INSTANTIATE_TEST_SUITE_P(, GateUp, ::testing::Values(Variant::native, Variant::shuffles, Variant::shared, Variant::lanes_16, Variant::int8),
                         [](const auto& i) { return variant_name(i.param); });

} // namespace
} // namespace auspex::gate_up_test
