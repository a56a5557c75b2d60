// Random weights made on the device: in every format finite, of the spread asked for, the same however a tensor is cut.
#include "kernels/random_fill.h"
#include "kernels/embed.h"
#include "kernels/linear.h"

#include "base/checked.h"
#include "shared/weight_format.h"

#include <cmath>

namespace auspex::random_fill_test {
namespace {

struct Case {
    DType dtype;
    uint32_t cols;
};

class RandomFill : public GpuTestWith<Case> {
  protected:
    static constexpr uint32_t kRows = 70;
    static constexpr float kSpread = 0.02f;

    // Empty shards of so many rows, full of poison.
    Tensor empty(uint32_t shard_rows) {
        const auto [dtype, cols] = GetParam();
        Tensor made;
        made.dtype = dtype;
        made.rows = kRows;
        made.cols = cols;
        made.padded_cols = padded_width(cols);
        for (uint32_t first = 0; first < kRows; first += shard_rows) {
            const uint32_t n = std::min(shard_rows, kRows - first);
            made.shards.push_back({poisoned(n * made.row_bytes()), first, n});
        }
        return made;
    }
    std::vector<uint32_t> words(const Tensor& tensor) {
        std::vector<uint32_t> all;
        for (const Shard& shard : tensor.shards) {
            const std::vector<uint32_t> part = read<uint32_t>(shard.buffer, shard.n_rows * tensor.row_bytes() / 4);
            all.insert(all.end(), part.begin(), part.end());
        }
        return all;
    }
    Tensor filled(uint64_t seed, uint32_t shard_rows = kRows) {
        Tensor tensor = empty(shard_rows);
        run([&](Recorder& to) { record_random_fill(to, tensor, seed, kSpread); });
        return tensor;
    }
};

TEST_P(RandomFill, weights_are_finite_and_of_the_spread_asked_for) {
    const uint32_t cols = GetParam().cols;
    const Tensor tensor = filled(7);
    std::vector<gpu::Row> rows;
    for (uint32_t token = 0; token < kRows; ++token) rows.push_back(plain_row(token, 0, token));
    const uint32_t stride = padded_width(cols);
    const Buffer row_buffer = upload(rows), x = output<float>(size_t{kRows} * stride);
    run([&](Recorder& to) { record_embed(to, tensor, row_buffer.view(), kRows, x.view(), stride); });
    const std::vector<float> values = floats(x, size_t{kRows} * stride);
    double sum = 0, squares = 0, largest = 0;
    for (uint32_t r = 0; r < kRows; ++r)
        for (uint32_t i = 0; i < cols; ++i) {
            const double value = double(values[size_t{r} * stride + i]);
            ASSERT_TRUE(std::isfinite(value)) << r << ", " << i;
            sum += value;
            squares += value * value;
            largest = std::max(largest, std::abs(value));
        }
    const double n = double(kRows) * cols, spread = double(kSpread);
    // The mean of independent weights deviates by 1 / √n of their spread, of blocks of 16 with a common shift of 0.22 by 1.3 / √n.
    EXPECT_LT(std::abs(sum / n), spread * 5 * 1.3 / std::sqrt(n));
    EXPECT_NEAR(std::sqrt(squares / n), spread, spread * (0.04 + 5 / std::sqrt(n)));
    EXPECT_LT(largest, 4 * spread);
}

TEST_P(RandomFill, is_the_same_in_any_shards_and_another_for_another_seed) {
    const std::vector<uint32_t> whole = words(filled(7)), cut = words(filled(7, 33)), other = words(filled(8));
    EXPECT_EQ(whole, cut);
    ASSERT_EQ(whole.size(), other.size());
    size_t equal = 0;
    for (size_t i = 0; i < whole.size(); ++i) equal += whole[i] == other[i];
    EXPECT_LT(equal, whole.size() / 2) << "scales may be equal, codes not";
    // No two rows alike.
    const size_t row = whole.size() / kRows;
    EXPECT_FALSE(std::equal(whole.begin(), whole.begin() + std::ptrdiff_t(row), whole.begin() + std::ptrdiff_t(row)));
}

TEST_P(RandomFill, padding_is_zero) {
    using namespace gpu; // the macros of weight_format.h name its constants
    const auto [dtype, cols] = GetParam();
    const Tensor tensor = filled(9);
    const uint32_t format = static_cast<uint32_t>(dtype), steps = tensor.steps();
    const uint64_t end = is_quantized(dtype) ? 16 * SCALE_PLANE(format, steps) + 4 * SCALE_WORDS(format, steps)
                                             : cols * uint64_t{dtype_bytes(dtype)};
    const std::vector<uint32_t> all = words(tensor);
    const auto* bytes = reinterpret_cast<const unsigned char*>(all.data());
    for (uint32_t r = 0; r < kRows; ++r)
        for (uint64_t at = end; at < tensor.row_bytes(); ++at)
            ASSERT_EQ(bytes[r * tensor.row_bytes() + at], 0u) << "row " << r << ", byte " << at;
}

INSTANTIATE_TEST_SUITE_P(, RandomFill,
                         ::testing::Values(Case{DType::f32, 203}, Case{DType::f16, 203}, Case{DType::bf16, 204}, Case{DType::q8_0, 96},
                                           Case{DType::q4_0, 96}, Case{DType::q4_1, 96}, Case{DType::q5_0, 96}, Case{DType::q5_1, 160},
                                           Case{DType::q2_k, 512}, Case{DType::q3_k, 256}, Case{DType::q4_k, 512},
                                           Case{DType::q5_k, 256}, Case{DType::q6_k, 768}),
                         [](const auto& at) { return std::string(dtype_name(at.param.dtype)); });

} // namespace
} // namespace auspex::random_fill_test
