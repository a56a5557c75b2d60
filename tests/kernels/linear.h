// What the tests of the two matrix kernels share: running them and comparing with the reference.
#pragma once

#include "gpu_test.h"
#include "kernels/matmul.h"
#include "kernels/normed_matvec.h"
#include "kernels/split_halves.h"
#include "reference/ops.h"

#include <cmath>
#include <numeric>

namespace auspex {

using RecordLinear = std::function<void(Recorder& to, const Tensor& weight, BufferView x, BufferView y, uint32_t n_rows,
                                        uint32_t y_stride, bool add)>;
inline const RecordLinear kMatvec = [](auto&&... args) { record_matvec(args...); };

// Every block format, with the fewest columns its blocks allow times an odd number.
struct QuantCase {
    DType dtype;
    uint32_t cols;
};
inline const std::vector<QuantCase> kQuantCases = {
    {DType::q8_0, 352}, {DType::q4_0, 352}, {DType::q4_1, 352}, {DType::q5_0, 352},  {DType::q5_1, 352},
    {DType::q2_k, 768}, {DType::q3_k, 768}, {DType::q4_k, 768}, {DType::q5_k, 768}, {DType::q6_k, 768},
};
inline std::string quant_case_name(const ::testing::TestParamInfo<QuantCase>& info) {
    return std::string(dtype_name(info.param.dtype));
}

class LinearTest : public GpuTest {
    Buffer halves_;

  protected:
    // x (n_rows, cols) as the residual stream has it, with an RMSNorm of random weights before the product.
    struct Normed {
        Buffer x, weight;
        NormedRows rows;
        std::vector<float> norm_weights;
    };
    Normed normed(std::span<const float> x, uint32_t cols) {
        const uint32_t stride = padded_width(cols);
        Normed out;
        out.norm_weights = random_floats(cols, 77);
        std::vector<float> padded(x.size() / cols * stride, 0.0f), weights(out.norm_weights);
        for (size_t r = 0; r < x.size() / cols; ++r) std::copy_n(&x[r * cols], cols, &padded[r * stride]);
        weights.resize(stride, 0.0f);
        padded.resize(padded.size() + 8 * stride, NAN); // rows that are not there
        out.x = upload(padded);
        out.weight = upload(weights);
        out.rows = {.x = out.x.view(), .weight = out.weight.view(), .width = cols, .eps = 1e-5f, .n_rows = static_cast<uint32_t>(x.size() / cols)};
        return out;
    }

    // The prompt kernel, with what comes before it on matrix units.
    const RecordLinear kMatmul = [this](Recorder& to, const Tensor& weight, BufferView x, BufferView y, uint32_t n_rows,
                                        uint32_t y_stride, bool add) {
        if (!matmul_wants_halves(to.tuning())) return record_matmul(to, weight, x, y, n_rows, y_stride, add);
        halves_ = output<std::byte>((n_rows + 1) * halves_bytes(weight.padded_cols)); // a row of poison after them
        record_split_halves(to, x, halves_.view(), n_rows, weight.padded_cols);
        to.cmd.barrier();
        record_matmul(to, weight, halves_.view(), y, n_rows, y_stride, add);
    };

    // x: (n_rows, cols). Returns y (n_rows, rows of the weight); starts from `before` when adding.
    std::vector<float> multiply(KernelLibrary& library, const RecordLinear& record, const Tensor& weight,
                                std::span<const float> x, const std::vector<float>* before = nullptr) {
        const uint32_t stride = weight.rows + 3; // wider than needed: neighbours must survive
        const auto n_rows = static_cast<uint32_t>(x.size() / weight.cols);
        std::vector<float> padded(size_t{n_rows} * weight.padded_cols, 0.0f);
        for (uint32_t r = 0; r < n_rows; ++r)
            std::copy_n(&x[size_t{r} * weight.cols], weight.cols, &padded[size_t{r} * weight.padded_cols]);
        padded.resize(padded.size() + 8 * weight.padded_cols, NAN); // rows that are not there
        constexpr uint64_t kBefore = 256;                           // bytes that are not the view's
        padded.insert(padded.begin(), kBefore / 4, NAN);
        const Buffer from = upload(padded), to = output<float>(size_t{n_rows} * stride + 4);
        auto* y = reinterpret_cast<float*>(to.mapped());
        for (uint32_t r = 0; before && r < n_rows; ++r)
            std::copy_n(&(*before)[size_t{r} * weight.rows], weight.rows, y + size_t{r} * stride);
        run(library, [&](Recorder& recorder) {
            record(recorder, weight, from.view(kBefore, from.size() - kBefore), to.view(), n_rows, stride, before != nullptr);
        });
        std::vector<float> out;
        for (uint32_t r = 0; r < n_rows; ++r) {
            out.insert(out.end(), y + size_t{r} * stride, y + size_t{r} * stride + weight.rows);
            for (uint32_t i = weight.rows; i < stride; ++i) {
                EXPECT_EQ(std::bit_cast<uint32_t>(y[size_t{r} * stride + i]), kPoison) << "wrote beside its columns";
            }
        }
        EXPECT_EQ(std::bit_cast<uint32_t>(y[size_t{n_rows} * stride]), kPoison) << "wrote past its rows";
        return out;
    }

    // Every product passes at most `chain` roundings; fma may be a product and a sum, so chain counts both.
    // Where activations are rounded to f16 on the way, `more` says by how much, relatively.
    void expect_right(std::span<const float> found, const std::vector<float>& weight, std::span<const float> x,
                      uint32_t cols, double chain, const std::vector<float>* before = nullptr, double more = 0.0) {
        reference::Vector expected, bound;
        for (size_t from = 0; from < x.size(); from += cols) {
            reference::Vector row(&x[from], &x[from] + cols), row_size;
            std::vector<float> weight_size(weight);
            for (float& w : weight_size)
                w = std::abs(w);
            for (double v : row)
                row_size.push_back(std::abs(v));
            const reference::Vector y = reference::matvec(weight, row), size = reference::matvec(weight_size, row_size);
            for (size_t o = 0; o < y.size(); ++o) {
                const double start = before ? double((*before)[expected.size()]) : 0.0;
                expected.push_back(start + y[o]);
                bound.push_back((rounding(chain) + more) * size[o] + (before ? kUnit * (std::abs(start) + size[o]) : 0.0) +
                                cols * kTiny);
            }
        }
        EXPECT_TRUE(all_near(found, expected, bound));
        EXPECT_LT(normalised_error(found, expected), kNormalisedError + more * more);
    }
};

} // namespace auspex
