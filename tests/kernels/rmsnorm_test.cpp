// RMSNorm against the reference, its padding, its choice of rows, and that rows do not see each other.
#include "gpu_test.h"
#include "kernels/rmsnorm.h"
#include "reference/ops.h"

#include <cmath>

namespace auspex::rmsnorm_test {
namespace {

constexpr float kEps = 1e-5f;

class Rmsnorm : public GpuTestWith<Variant> {
  protected:
    // Row r of the result comes from row first + r · step of x.
    std::vector<float> normalise(const std::vector<float>& x, const std::vector<float>& weight, uint32_t n_rows,
                                 uint32_t first = 0, uint32_t step = 1) {
        const auto width = static_cast<uint32_t>(weight.size());
        const Buffer from = upload(x), scale = upload(weight),
                     to = output<float>(size_t{n_rows + 1} * padded_width(width));
        run(kernels(GetParam()), [&](Recorder& recorder) {
            record_rmsnorm(recorder, {.x = from.view(), .weight = scale.view(), .y = to.view()}, {width, n_rows, kEps, first, step});
        });
        uint32_t after = 0;
        std::memcpy(&after, to.mapped() + size_t{n_rows} * padded_width(width) * 4, 4);
        EXPECT_EQ(after, kPoison) << "wrote past its rows";
        return floats(to, size_t{n_rows} * padded_width(width));
    }
};

// (rows, padded width) with poison in the padding.
std::vector<float> padded_rows(const std::vector<float>& values, uint32_t width) {
    const size_t stride = padded_width(width), n_rows = values.size() / width;
    std::vector<float> out(n_rows * stride, NAN);
    for (size_t r = 0; r < n_rows; ++r)
        std::copy_n(&values[r * width], width, &out[r * stride]);
    return out;
}

TEST_P(Rmsnorm, agrees_with_the_reference) {
    for (uint32_t width : {1u, 7u, 33u, 64u, 1234u}) {
        constexpr uint32_t kRows = 7;
        std::vector<float> values = random_floats(size_t{width} * kRows, width);
        for (uint32_t i = 0; i < width; ++i)
            values[width + i] = 0.0f; // a row of zeros
        for (uint32_t i = 0; i < width; ++i)
            values[2 * width + i] *= 1e4f; // a loud one
        const std::vector<float> weight = random_floats(width, width + 1);
        const std::vector<float> found = normalise(padded_rows(values, width), weight, kRows);
        for (uint32_t r = 0; r < kRows; ++r) {
            const reference::Vector x(&values[r * width], &values[r * width] + width);
            reference::Vector expected = reference::rmsnorm(x, weight, kEps);
            expected.resize(padded_width(width), 0.0);
            // n squarings and additions, halved by the root; division, root (2.5 + 2.5 ULP), addition, two products.
            const double relative = rounding(2.0 * width + 1.0) / 2.0 + 3.0 * kDivisionError + rounding(4);
            reference::Vector bound(expected.size());
            for (size_t i = 0; i < bound.size(); ++i)
                bound[i] = relative * std::abs(expected[i]);
            const size_t stride = expected.size();
            EXPECT_TRUE(all_near({&found[r * stride], stride}, expected, bound)) << "width " << width << ", row " << r;
        }
    }
}

TEST_P(Rmsnorm, takes_the_rows_it_is_told_and_gives_each_the_same_bits_in_any_company) {
    constexpr uint32_t kWidth = 77, kRows = 21;
    const std::vector<float> x = padded_rows(random_floats(kWidth * kRows, 5), kWidth);
    const std::vector<float> weight = random_floats(kWidth, 6);
    const std::vector<float> all = normalise(x, weight, kRows);
    const std::vector<float> every_fifth = normalise(x, weight, 4, 1, 5);
    constexpr size_t kStride = padded_width(kWidth);
    for (uint32_t r = 0; r < 4; ++r)
        EXPECT_TRUE(same_bits({&every_fifth[r * kStride], kStride}, {&all[(1 + 5 * r) * kStride], kStride}));
    for (uint32_t r : {0u, 13u, 20u})
        EXPECT_TRUE(same_bits(normalise(x, weight, 1, r), std::span(all).subspan(r * kStride, kStride)));
}

INSTANTIATE_TEST_SUITE_P(, Rmsnorm, ::testing::ValuesIn(all_variants()),
                         [](const auto& i) { return variant_name(i.param); });

class RmsnormBits : public GpuTest {};

TEST_F(RmsnormBits, do_not_depend_on_how_lanes_exchange) {
    constexpr uint32_t kWidth = 336, kRows = 40;
    const Buffer x = upload(random_floats(kWidth * kRows, 7)), weight = upload(random_floats(kWidth, 8));
    std::vector<std::vector<float>> found;
    for (Variant variant : {Variant::native, Variant::shuffles, Variant::shared}) {
        const Buffer y = output<float>(kWidth * kRows);
        run(kernels(variant), [&](Recorder& to) {
            record_rmsnorm(to, {.x = x.view(), .weight = weight.view(), .y = y.view()}, {kWidth, kRows, kEps});
        });
        found.push_back(floats(y, kWidth * kRows));
    }
    EXPECT_TRUE(same_bits(found[0], found[1]));
    EXPECT_TRUE(same_bits(found[0], found[2]));
}

} // namespace
} // namespace auspex::rmsnorm_test
