// Records rotation and cache append.
#include "kernels/rope_append.h"

#include "kernels/cache_args.h"

namespace auspex {

void record_rope_append(Recorder& to, const AttentionShape& shape, const ops::RopeAppend::Bindings& buffers, uint32_t n_rows) {
    const uint32_t ahead = to.tuning().wide ? 1 : 4; // llvmpipe's lanes wait for no memory
    const auto kernel = to.kernel<ops::RopeAppend>({.constants = {shape.head_dim, cache_type(shape.cache_dtype), ahead}});
    if (kernel) to.cmd.dispatch(kernel, {n_rows, 1, 1}, cache_args<gpu::RopeAppendArgs>(shape), buffers);
}

} // namespace auspex
