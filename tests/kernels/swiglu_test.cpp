// SwiGLU against the reference, extremes and padding included.
#include "gpu_test.h"
#include "kernels/swiglu.h"
#include "reference/ops.h"

#include <cmath>

namespace auspex::swiglu_test {
namespace {

class Swiglu : public GpuTest {};

TEST_F(Swiglu, agrees_with_the_reference) {
    for (uint32_t width : {1u, 7u, 33u, 1234u}) {
        constexpr uint32_t kRows = 3;
        std::vector<float> gate_up = random_floats(size_t{2} * kRows * width, width, 5.0f);
        gate_up[0] = -200.0f; // exp overflows: the answer is a zero, not NaN
        gate_up[2 * width] = 200.0f;
        gate_up[4 * width] = -80.0f;
        const uint32_t stride = padded_width(width);
        const Buffer from = upload(gate_up), y = output<float>(size_t{kRows} * stride);
        run([&](Recorder& to) { record_swiglu(to, from.view(), y.view(), kRows, width); });
        const std::vector<float> found = floats(y, size_t{kRows} * stride);
        for (uint32_t r = 0; r < kRows; ++r) {
            const float* row = &gate_up[size_t{2} * r * width];
            const reference::Vector gate(row, row + width), up(row + width, row + 2 * width);
            reference::Vector expected = reference::swiglu(gate, up), bound(stride, 0.0);
            for (uint32_t i = 0; i < width; ++i) {
                const double relative = exp_error(gate[i]) + kDivisionError + rounding(3);
                // Where exp overflows f32 the true value is below 89 · exp(-88) · |up|.
                bound[i] = relative * std::abs(expected[i]) + 89.0 * std::exp(-88.0) * std::abs(up[i]);
            }
            expected.resize(stride, 0.0);
            EXPECT_TRUE(all_near({&found[size_t{r} * stride], stride}, expected, bound))
                << "width " << width << ", row " << r;
        }
    }
}

} // namespace
} // namespace auspex::swiglu_test
