// What recording any member of the mat-vec family takes: the variant for so many rows, and a dispatch per shard.
#pragma once

#include "base/checked.h"
#include "kernels/matvec.h"
#include "kernels/shards.h"

#include <algorithm>
#include <initializer_list>

namespace auspex {

struct MatvecVariant {
    KernelId id;
    uint32_t tile_rows;
    uint32_t group_outs; // outputs per workgroup
};
// normed: of a member after an RMSNorm. own_constants: from constant_id 8 on. least_outs: a team's, 2 where PAIRS_OUT is defined.
MatvecVariant matvec_variant(const Recorder& to, const Tensor& weight, uint32_t n_rows, bool normed, std::initializer_list<uint32_t> own_constants,
                             uint32_t least_outs);

template <typename Op> struct MatvecKernel {
    KernelOf<Op> kernel; // none after a failure
    uint32_t tile_rows, group_outs;
};
template <typename Op>
MatvecKernel<Op> matvec_kernel(Recorder& to, const Tensor& weight, uint32_t n_rows, std::initializer_list<uint32_t> own_constants, uint32_t least_outs = 1) {
    constexpr bool normed = requires { &Op::Bindings::norm; };
    MatvecVariant variant = matvec_variant(to, weight, n_rows, normed, own_constants, least_outs);
    return {to.kernel<Op>(std::move(variant.id)), variant.tile_rows, variant.group_outs};
}

// dispatch(grid, args, buffer) for every shard of the weight, its members of args filled in. first_out: of the weight's first row.
template <typename Op, typename Dispatch>
void for_each_shard(Recorder& to, const MatvecKernel<Op>& kernel, const Tensor& weight, uint32_t n_rows, uint32_t first_out, typename Op::Args args,
                    Dispatch&& dispatch) {
    const uint32_t max_x = to.cmd.device().caps.max_groups[0];
    each_shard(to, weight, [&](const Shard& shard) {
        const uint32_t groups = ceil_div(shard.n_rows, kernel.group_outs);
        const Groups grid = {std::min(groups, max_x), ceil_div(groups, std::min(groups, max_x)), ceil_div(n_rows, kernel.tile_rows)};
        args.k_steps = weight.steps();
        args.n_out = shard.n_rows;
        args.first_out = first_out + shard.first_row;
        args.n_rows = n_rows;
        args.x_row_stride = weight.padded_cols / 4;
        dispatch(grid, args, shard.buffer.view());
    });
}

// What for_each_shard leaves of an op's MATVEC_MEMBERS.
template <typename Args> void set_rows(Args& args, uint32_t y_stride, const NormedRows& rows) {
    args.y_stride = y_stride;
    args.x_first_row = rows.first_row;
    args.x_row_step = rows.row_step;
    args.norm_width = rows.width;
    args.norm_eps = rows.eps;
}

} // namespace auspex
