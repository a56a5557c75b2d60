// How fast the row family streams weights and the prompt kernels multiply, per format: tables for people, no assertion
// about time.
//   build/dev/tests/bin/kernels_long   (a quiet machine; medians of 9)
#include "kernels/linear.h"

#include "base/platform.h"

#include <algorithm>
#include <cstdio>

namespace auspex::throughput_long {
namespace {

class Throughput : public LinearTest {
  protected:
    static constexpr uint32_t kSize = 4096, kRuns = 9, kPasses = 4;

    // Milliseconds of one product with n_rows rows.
    double milliseconds(const Tensor& weight, uint32_t n_rows) {
        const Buffer x = upload(random_floats(size_t{n_rows} * kSize, 1)), y = output<float>(size_t{n_rows} * kSize);
        std::vector<double> times;
        for (uint32_t i = 0; i <= kRuns; ++i) {
            const uint64_t begin = now_ns();
            run(kernels(), [&](Recorder& to) {
                for (uint32_t pass = 0; pass < kPasses; ++pass) {
                    record_matvec(to, weight, x.view(), y.view(), n_rows, kSize, false);
                    to.cmd.barrier();
                }
            });
            if (i > 0) times.push_back(static_cast<double>(now_ns() - begin) * 1e-6 / kPasses); // the first compiles
        }
        std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
        return times[kRuns / 2];
    }
};

TEST_F(Throughput, of_every_format) {
    std::printf("%u x %u, %s\n", kSize, kSize, device().caps.driver.c_str());
    std::printf("| format | bits | GB/s of weights | G weights/s | v(2) | v(4) | v(6) | v(8) |\n|---|---:|---:|---:|---:|---:|---:|---:|\n");
    for (DType dtype : {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q6_k, DType::q5_k, DType::q5_1, DType::q5_0, DType::q4_k,
                        DType::q4_1, DType::q4_0, DType::q3_k, DType::q2_k}) {
        std::vector<float> values = is_quantized(dtype) ? std::vector<float>() : random_floats(size_t{kSize} * kSize, 2);
        Tensor weight = is_quantized(dtype) ? quantized_tensor(values, kSize, kSize, dtype, 2) : tensor(values, kSize, kSize, dtype);
        if (kernels().tuning().tiles_weights && fits_tiles(dtype, kSize, kSize)) weight = in_tiles(weight);
        const double one = milliseconds(weight, 1);
        ASSERT_GT(one, 0.0);
        std::printf("| %s | %.1f | %.2f | %.2f |", std::string(dtype_name(dtype)).c_str(), 8.0 * static_cast<double>(weight.bytes()) / kSize / kSize,
                    static_cast<double>(weight.bytes()) * 1e-6 / one, 1e-6 * kSize * kSize / one);
        for (uint32_t n_rows : {2, 4, 6, 8}) std::printf(" %.2f |", milliseconds(weight, n_rows) / one);
        std::printf("\n");
        std::fflush(stdout);
    }
}

// 256 rows times a matrix of a 168 M parameter model.
TEST_F(Throughput, of_prompts) {
    constexpr uint32_t kOut = 2816, kCols = 1024, kRows = 256;
    std::printf("%u rows of %u x %u, %s\n| format | kernel | ms | GMAC/s |\n|---|---|---:|---:|\n", kRows, kOut, kCols, device().caps.driver.c_str());
    const Buffer x = upload(random_floats(size_t{kRows} * kCols, 1)), y = output<float>(size_t{kRows} * kOut);
    for (DType dtype : {DType::f16, DType::q4_k}) {
        std::vector<float> values = is_quantized(dtype) ? std::vector<float>() : random_floats(size_t{kOut} * kCols, 2);
        const Tensor weight = is_quantized(dtype) ? quantized_tensor(values, kOut, kCols, dtype, 2) : tensor(values, kOut, kCols, dtype);
        for (Variant variant : {Variant::native, Variant::tiles, Variant::matrices, Variant::matrices_1}) {
            if (variant >= Variant::matrices && !device().caps.matrix) continue;
            std::vector<double> times;
            for (uint32_t i = 0; i <= 3; ++i) {
                const uint64_t begin = now_ns();
                run(kernels(variant), [&](Recorder& to) { kMatmul(to, weight, x.view(), y.view(), kRows, kOut, false); });
                if (i > 0) times.push_back(static_cast<double>(now_ns() - begin) * 1e-6);
            }
            const double ms = *std::min_element(times.begin(), times.end());
            std::printf("| %s | %s | %.1f | %.2f |\n", std::string(dtype_name(dtype)).c_str(), variant_name(variant).c_str(), ms, 1e-6 * kRows * kOut * kCols / ms);
            std::fflush(stdout);
        }
    }
}

} // namespace
} // namespace auspex::throughput_long
