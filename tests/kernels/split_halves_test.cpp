// Activations as sums of two f16: as good as 22 bits over the whole range of f32, zeros after them, a row by itself.
#include "kernels/split_halves.h"
#include "gpu_test.h"
#include "reference/half.h"
#include "shared/split_halves_args.h"

#include <bit>
#include <cmath>

namespace auspex::split_halves_test {
namespace {

class SplitHalves : public GpuTest {
  protected:
    struct Split {
        std::vector<double> high, low; // (rows, halves_width)
        std::vector<double> scale;     // 2^e of a row
    };
    Split split(const std::vector<float>& x, uint32_t width) {
        const auto n_rows = static_cast<uint32_t>(x.size() / width);
        const uint32_t words = static_cast<uint32_t>(halves_bytes(width) / 4), padded = gpu::halves_width(width);
        const Buffer from = upload(x), to = output<uint32_t>(n_rows * words + 1);
        run([&](Recorder& recorder) { record_split_halves(recorder, from.view(), to.view(), n_rows, width); });
        EXPECT_EQ(read<uint32_t>(to, 1, n_rows * words)[0], kPoison) << "wrote past its rows";
        Split out;
        for (uint32_t r = 0; r < n_rows; ++r) {
            const std::vector<uint32_t> row = read<uint32_t>(to, words, r * words);
            auto half = [&](uint32_t i) { return double(reference::half_to_float(static_cast<uint16_t>(row[i / 2] >> (i % 2 * 16)))); };
            for (uint32_t i = 0; i < padded; ++i) {
                out.high.push_back(half(i));
                out.low.push_back(half(padded + i));
            }
            out.scale.push_back(1.0 / double(std::bit_cast<float>(row[padded])));
        }
        return out;
    }
};

TEST_F(SplitHalves, keep_22_bits_of_every_magnitude) {
    for (uint32_t width : {8u, 104u, 1240u, 2104u}) { // an invocation has several vectors of the last two
        const uint32_t padded = gpu::halves_width(width);
        std::vector<float> x;
        for (float size : {1.0f, 1e-30f, 3e-5f, 70000.0f, 1e30f}) {
            const std::vector<float> row = random_floats(width, 1, size);
            x.insert(x.end(), row.begin(), row.end());
            x[x.size() - 1 - width / 8] = 4 * size; // the largest
            x.back() = size * 1e-5f; // beside a row's large elements a small one
        }
        const Split made = split(x, width);
        for (uint32_t r = 0; r < 5; ++r) {
            double largest = 0.0;
            for (uint32_t i = 0; i < padded; ++i) {
                const double high = made.high[r * padded + i], low = made.low[r * padded + i];
                const double exact = i < width ? x[r * width + i] * made.scale[r] : 0.0;
                // Parts below 2^-14 may be lost, which is 2^-28 of the row's largest.
                EXPECT_LE(std::abs(exact - high - low), 0x1p-22 * std::abs(exact) + 0x1p-13 * (std::abs(exact) < 1.0)) << "row " << r << ", " << i;
                if (i >= width) {
                    EXPECT_EQ(std::abs(high) + std::abs(low), 0.0);
                }
                largest = std::max(largest, std::abs(exact));
            }
            EXPECT_GE(largest, 0x1p14);
            EXPECT_LT(largest, 0x1p15);
            EXPECT_EQ(std::exp2(std::round(std::log2(made.scale[r]))), made.scale[r]) << "no power of two";
        }
    }
}

TEST_F(SplitHalves, of_nothing_are_nothing_and_of_no_number_no_number) {
    std::vector<float> x(3 * 40, 0.0f);
    x[40 + 7] = NAN;
    x[40 + 8] = std::bit_cast<float>(0x7fffffffu); // which NVIDIA's devices make of any
    x[40 + 9] = std::bit_cast<float>(0xffffffffu);
    x[80 + 9] = -INFINITY;
    const Split made = split(x, 40);
    for (uint32_t i = 0; i < 64; ++i)
        EXPECT_EQ(std::abs(made.high[i]) + std::abs(made.low[i]), 0.0);
    for (uint32_t i : {7, 8, 9}) EXPECT_TRUE(std::isnan(made.high[64 + i])) << i;
    EXPECT_FALSE(std::isfinite(made.high[128 + 9] + made.low[128 + 9]));
    for (double scale : made.scale)
        EXPECT_TRUE(std::isfinite(scale) && scale > 0.0);
}

} // namespace
} // namespace auspex::split_halves_test
