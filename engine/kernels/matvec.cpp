// Chooses the variant for a row count and records one dispatch per shard.
#include "kernels/matvec_family.h"
#include "shared/texels.h"
#include "shared/weight_format.h"

#include <algorithm>
#include <bit>

namespace auspex {

namespace {
// The ".wide" variants are built with these many outputs: shaders/variants.cmake has them.
uint32_t wide_outs(bool quant) {
    return quant ? 8 : 16;
}

// That a lane asks for: RawStep of weight.glsl, of blocks.
uint32_t words_of_step(const Tensor& weight) {
    using namespace gpu; // the macros of weight_format.h name its constants
    const uint32_t format = weight.layout() & kFormatMask, kind = SCALE_KIND(format);
    const uint32_t scales = kind == kScalesPacked ? 4 : kind == kScalesHalf || kind == kScalesPair ? 1 : 2;
    return LOW_BITS(format) + HIGH_BITS(format) + scales;
}

// As many as tuning says, but no more than leave an eighth of a lane's work for nothing, since short rows of blocks give it two or
// three steps, than a loop should hold unrolled, and than compilers hold in registers beside 16 outputs or while x is rounded.
uint32_t steps_ahead(const Tuning& tuning, const Tensor& weight, uint32_t tile, uint32_t outs, bool int8) {
    constexpr uint32_t kUnrolled = 64; // of an octet, a row and an output
    const uint32_t most_words = int8 ? std::min(60u, 3 * tuning.matvec_sums) : ~0u; // of weights; with 30 Intel's compiler spills, with 64 RDNA4 has 5 subgroups
    const uint32_t each = (is_quantized(weight.dtype) ? 4 : 1) * tile * outs;
    const uint32_t own = ceil_div(weight.steps(), tuning.lanes);
    uint32_t ahead = tuning.wide ? 1 : tile > 2 ? tuning.matvec_many_ahead : tuning.matvec_ahead;
    if (outs >= 16) ahead = std::min(ahead, 2u);
    while (ahead > 1 && (8 * ahead * ceil_div(own, ahead) > 9 * own || ahead * each > kUnrolled || ahead * outs * words_of_step(weight) > most_words)) --ahead;
    return ahead;
}
// What the family's members take of shared memory where x of blocks goes through it: `staged` of dots.glsl, rows of x and of a norm's
// weights; a team's sums; without shuffles what reduce.glsl exchanges; and what finds the best token.
uint32_t shared_bytes(const Tuning& tuning, uint32_t rows, uint32_t outs, bool normed, uint32_t ahead) {
    constexpr uint32_t kQuads = 8, kExchanged = 40, kOther = 512;
    const uint32_t threads = tuning.lanes * tuning.matvec_teams;
    return 16 * kQuads * (rows + normed) * (tuning.lanes * ahead + 1) + 4 * tuning.matvec_teams * outs * rows + (tuning.subgroup ? 0 : threads * kExchanged) + kOther;
}

// The same where x is rounded: int8_x.glsl's. Every device has as much, and workgroups that take no more share a unit.
constexpr uint32_t kInt8Bytes = 16384;
uint32_t int8_bytes(const Tuning& tuning, uint32_t rows, uint32_t outs, uint32_t ahead) {
    constexpr uint32_t kRoundedStep = 48, kOther = 512;
    return kRoundedStep * rows * tuning.lanes * ahead + 4 * tuning.matvec_teams * outs * rows + kOther;
}

// Outputs per team as tuning says, but few enough that a matrix of few outputs keeps the device's units busy.
uint32_t wanted_outs(const Tuning& tuning, const Tensor& weight, uint32_t tile) {
    uint32_t outs = tile > 2 ? tuning.matvec_many_outs : tuning.matvec_outs;
    while (outs > 2 && weight.rows / outs < tuning.matvec_least_teams) outs /= 2;
    return outs;
}
} // namespace

uint32_t matvec_tile_rows(const Tuning& tuning, DType dtype, uint32_t n_rows) {
    const std::vector<uint32_t>& rows = is_quantized(dtype) ? tuning.matvec_quant_rows : tuning.matvec_rows;
    for (uint32_t built : rows)
        if (built >= n_rows) return built;
    return rows.back();
}

MatvecVariant matvec_variant(const Recorder& to, const Tensor& weight, uint32_t n_rows, bool normed, std::initializer_list<uint32_t> own_constants,
                             uint32_t least_outs) {
    const Tuning& tuning = to.tuning();
    const bool quant = is_quantized(weight.dtype);
    // Where registers hold fewer outputs of so many rows than a team must have, rows go in smaller tiles.
    uint32_t tile = matvec_tile_rows(tuning, weight.dtype, tuning.wide ? n_rows : std::min(n_rows, tuning.matvec_sums / least_outs));
    const auto outs_of = [&](uint32_t rows) {
        return tuning.wide ? wide_outs(quant) : std::min(wanted_outs(tuning, weight, rows), std::max(std::bit_floor(tuning.matvec_sums / rows), least_outs));
    };
    const bool int8 = to.int8_x && tuning.int8_drafts && quant && !tuning.wide && tuning.subgroup;
    // And where shared memory does not hold so many rounded rows, since whether a row is rounded must not depend on its company. One row
    // always fits.
    while (int8 && tile > tuning.matvec_quant_rows.front() && int8_bytes(tuning, tile, outs_of(tile), 1) > kInt8Bytes)
        tile = *std::prev(std::ranges::lower_bound(tuning.matvec_quant_rows, tile));
    const uint32_t outs = outs_of(tile), lanes = tuning.lanes, teams = tuning.matvec_teams;
    KernelId id = {.variant = quant ? ".quant" : "", .has_subgroup_variant = true};
    if (int8) id.variant += ".int8";
    const uint32_t most_bytes = int8 ? kInt8Bytes : tuning.matvec_staged_bytes;
    const auto bytes = [&](uint32_t steps) { return int8 ? int8_bytes(tuning, tile, outs, steps) : shared_bytes(tuning, tile, outs, normed, steps); };
    const bool staged = quant && !tuning.wide && bytes(1) <= most_bytes;
    uint32_t ahead = steps_ahead(tuning, weight, tile, outs, int8);
    while (staged && bytes(ahead) > most_bytes) --ahead;
    id.constants = {lanes * teams, lanes, teams, weight.layout(), tile, outs, ahead, staged};
    id.constants.insert(id.constants.end(), own_constants);
    id.texels = {gpu::kTexelVecs + gpu::kMatvecWeight, gpu::kTexelVecs + gpu::kMatvecX};
    if (normed) id.texels.push_back(gpu::kTexelVecs + gpu::kMatvecNorm);
    if (quant) id.texels.push_back(gpu::kTexelWords + gpu::kMatvecWeight);
    id.wide_variant = id.variant + ".wide.rows" + std::to_string(tile);
    return {std::move(id), tile, outs * teams};
}

void record_matvec(Recorder& to, const Tensor& weight, BufferView x, BufferView y, uint32_t n_rows, uint32_t y_stride, bool add,
                   uint32_t y_first) {
    const auto matvec = matvec_kernel<ops::Matvec>(to, weight, n_rows, {add ? 1u : 0u});
    if (!matvec.kernel) return;
    gpu::MatvecArgs common = {};
    set_rows(common, y_stride, {.x = x, .weight = {}, .width = 0, .eps = 0, .n_rows = n_rows});
    for_each_shard(to, matvec, weight, n_rows, y_first, common, [&](Groups grid, const gpu::MatvecArgs& args, BufferView shard) {
        to.cmd.dispatch(matvec.kernel, grid, args, {.weight = shard, .x = x, .y = y});
    });
}

} // namespace auspex
