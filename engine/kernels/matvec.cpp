// Records the row family: one dispatch per shard, rows in tiles of a built row count.
#include "kernels/matvec.h"

#include "base/checked.h"
#include "shared/matvec_args.h"

namespace auspex {

namespace {
// Outputs per workgroup of the wide variants, as shaders/variants.cmake has them.
uint32_t wide_outs(bool quant, uint32_t tile) {
    return !quant && tile <= 8 ? 16 : 8;
}
} // namespace

uint32_t matvec_tile_rows(const Tuning& tuning, DType dtype, uint32_t n_rows) {
    const std::vector<uint32_t>& rows = is_quantized(dtype) ? tuning.matvec_quant_rows : tuning.matvec_rows;
    for (uint32_t built : rows)
        if (built >= n_rows) return built;
    return rows.back();
}

void record_matvec(Recorder& to, const Tensor& weight, BufferView x, BufferView y, uint32_t n_rows, uint32_t y_stride, bool add,
                   uint32_t y_first) {
    const Tuning& tuning = to.tuning();
    const bool quant = is_quantized(weight.dtype);
    uint32_t tile = matvec_tile_rows(tuning, weight.dtype, n_rows);
    uint32_t outs = tuning.wide ? wide_outs(quant, tile) : tuning.matvec_outs;
    uint32_t lanes = tuning.lanes, teams = tuning.matvec_teams;
    const Kernel* kernel = to.kernel({quant ? "matvec.quant" : "matvec",
                                      3,
                                      sizeof(gpu::MatvecArgs),
                                      true,
                                      {lanes * teams, lanes, teams, static_cast<uint32_t>(weight.dtype), add ? 1u : 0u, tile, outs},
                                      (quant ? "matvec.quant.wide.rows" : "matvec.wide.rows") + std::to_string(tile)});
    if (!kernel) return;
    uint32_t max_x = to.cmd.device().caps.max_groups[0];
    for (const Shard& shard : weight.shards) {
        uint32_t groups = ceil_div(shard.n_rows, outs * teams);
        Groups grid = {std::min(groups, max_x), ceil_div(groups, std::min(groups, max_x)), ceil_div(n_rows, tile)};
        to.cmd.dispatch(*kernel, grid,
                        gpu::MatvecArgs{.k_steps = weight.steps(),
                                        .n_out = shard.n_rows,
                                        .first_out = y_first + shard.first_row,
                                        .n_rows = n_rows,
                                        .x_row_stride = weight.padded_cols / 4,
                                        .y_stride = y_stride},
                        {shard.buffer.view(), x, y});
    }
}

} // namespace auspex
