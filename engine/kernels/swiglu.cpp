// Records SwiGLU.
#include "kernels/swiglu.h"

#include "base/checked.h"

namespace auspex {

void record_swiglu(Recorder& to, BufferView gate_up, BufferView y, uint32_t n_rows, uint32_t width, bool in_pairs) {
    const auto kernel = to.kernel<ops::Swiglu>();
    if (!kernel) return;
    uint32_t stride = round_up<uint32_t>(width, 8);
    to.cmd.dispatch(kernel, {ceil_div(stride, 64u), n_rows, 1},
                    {.n_rows = n_rows, .width = width, .y_stride = stride, .step = in_pairs ? 2u : 1u, .up_offset = in_pairs ? 1u : width},
                    {.gate_up = gate_up, .y = y});
}

} // namespace auspex
