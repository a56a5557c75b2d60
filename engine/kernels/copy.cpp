// Records the copy kernel.
#include "kernels/copy.h"

#include "base/checked.h"

#include <algorithm>

namespace auspex {

namespace {
constexpr uint32_t kInvocations = 128;      // per workgroup, as in the shader: what every device has
constexpr uint32_t kVectorsEach = 4;        // more per invocation once the grid is full
} // namespace

void record_kernel_copy(Recorder& to, BufferView from, BufferView target) {
    const auto kernel = to.kernel<ops::Copy>();
    if (!kernel) return;
    const auto n_vectors = static_cast<uint32_t>(from.size / 16);
    const uint32_t groups = std::clamp(ceil_div(n_vectors, kInvocations * kVectorsEach), 1u, to.cmd.device().caps.max_groups[0]);
    to.cmd.dispatch(kernel, {groups, 1, 1}, {.n_vectors = n_vectors, .stride = groups * kInvocations}, {.from = from, .to = target});
}

} // namespace auspex
