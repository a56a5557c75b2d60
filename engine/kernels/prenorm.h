// The RMSNorm of the row family's normed members as a stage of its own, where that costs less than in each of their workgroups
// (Tuning::norm_stage_rows). The same sums in the same order, so the bits are those of a member that norms by itself.
#pragma once

#include "kernels/matvec.h"
#include "shared/prenorm_args.h"

namespace auspex {

namespace ops {
struct Prenorm {
    static constexpr std::string_view kShader = "prenorm";
    using Args = gpu::PrenormArgs;
    struct Bindings {
        BufferView x, weight, y, scales;
    };
};
} // namespace ops

// y: (rows.n_rows, padded width) f32; scales: (rows.n_rows) f32, in 16 bytes at least, a texel. Returns the rows as they then lie,
// for any weight with the columns of this one that is in blocks if this one is.
NormedRows record_prenorm(Recorder& to, const Tensor& weight, const NormedRows& rows, BufferView y, BufferView scales);

} // namespace auspex
