// A mat-vec after an RMSNorm; a member of the row family. As the head it can leave the best tokens instead of logits.
#pragma once

#include "kernels/matvec.h"
#include "shared/normed_matvec_args.h"

namespace auspex {

namespace ops {
struct NormedMatvec {
    static constexpr std::string_view kShader = "normed_matvec";
    using Args = gpu::NormedMatvecArgs;
    struct Bindings {
        BufferView weight, x, y, norm, bests, state, rows;
    };
};
} // namespace ops

void record_normed_matvec(Recorder& to, const Tensor& weight, const NormedRows& rows, BufferView y, uint32_t y_stride, uint32_t y_first = 0);

// A row chooses its token by the logit or, with adds_noise and in slots with a temperature, by the key of coupled sampling.
struct BestTokens {
    BufferView bests;       // BestToken: at most ceil(rows of the weight / 2) per row; how many is returned
    BufferView state;       // (slots) SlotState
    bool adds_noise;
    BufferView rows = {};   // Row: of row r the one at first_row + r · row_step
    uint32_t first_row = 0;
    uint32_t row_step = 1;
};
// weight: (vocab, d), the head. For record_pick_best: so many best tokens per row.
uint32_t record_best_tokens(Recorder& to, const Tensor& weight, const NormedRows& rows, const BestTokens& bests);

} // namespace auspex
