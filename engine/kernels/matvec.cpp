// Records the row family: one dispatch per shard, rows in tiles of a built row count.
#include "kernels/matvec.h"

#include "base/checked.h"
#include "shared/matvec_args.h"

namespace auspex {

uint32_t matvec_tile_rows(const Tuning& tuning, uint32_t n_rows) {
    for (uint32_t built : tuning.matvec_rows)
        if (built >= n_rows) return built;
    return tuning.matvec_rows.back();
}

void record_matvec(Recorder& to, const Tensor& weight, BufferView x, BufferView y, uint32_t n_rows, uint32_t y_stride, bool add,
                   uint32_t y_first) {
    const Tuning& tuning = to.tuning();
    uint32_t tile = matvec_tile_rows(tuning, n_rows);
    uint32_t outs = !tuning.wide ? tuning.matvec_outs : tile <= 8 ? tuning.matvec_wide_outs : tuning.matvec_wide_outs_many;
    uint32_t lanes = tuning.lanes, teams = tuning.matvec_teams;
    const Kernel* kernel = to.kernel({"matvec",
                                      3,
                                      sizeof(gpu::MatvecArgs),
                                      true,
                                      {lanes * teams, lanes, teams, static_cast<uint32_t>(weight.dtype), add ? 1u : 0u, tile, outs},
                                      "matvec.wide.rows" + std::to_string(tile)});
    if (!kernel) return;
    uint32_t max_x = to.cmd.device().caps.max_groups[0];
    for (const Shard& shard : weight.shards) {
        uint32_t groups = ceil_div(shard.n_rows, outs * teams);
        Groups grid = {std::min(groups, max_x), ceil_div(groups, std::min(groups, max_x)), ceil_div(n_rows, tile)};
        to.cmd.dispatch(*kernel, grid,
                        gpu::MatvecArgs{.k_blocks = weight.blocks(),
                                        .n_out = shard.n_rows,
                                        .first_out = y_first + shard.first_row,
                                        .n_rows = n_rows,
                                        .x_row_stride = weight.padded_cols / 4,
                                        .y_stride = y_stride},
                        {shard.buffer.view(), x, y});
    }
}

} // namespace auspex
