// x[r] = table[token of row r]; gathers run once per shard.
#pragma once

#include "kernels/kernel_library.h"
#include "shared/embed_args.h"
#include "tensor/tensor.h"

namespace auspex {

namespace ops {
struct Embed {
    static constexpr std::string_view kShader = "embed";
    using Args = gpu::EmbedArgs;
    struct Bindings {
        BufferView weight, rows, x;
    };
};
} // namespace ops

// rows: (n_rows) Row; x: (n_rows, x_stride) f32. Inactive rows and tokens beyond the table become zeros.
void record_embed(Recorder& to, const Tensor& table, BufferView rows, uint32_t n_rows, BufferView x, uint32_t x_stride);

} // namespace auspex
