// The tables. Every workaround names what it is for.
#include "kernels/tuning.h"

#include "base/checked.h"
#include "shared/matmul_args.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace auspex {

namespace {
constexpr uint32_t kVendorNvidia = 0x10de, kVendorAmd = 0x1002, kVendorIntel = 0x8086;

bool is_llvmpipe(const DeviceCaps& caps) {
    return caps.driver_id == VK_DRIVER_ID_MESA_LLVMPIPE;
}

template <typename T> bool has(const std::vector<T>& list, T value) {
    return std::find(list.begin(), list.end(), value) != list.end();
}

bool may_build(const std::vector<uint32_t>& rows, const std::vector<uint32_t>& base) {
    const bool ascends = std::adjacent_find(rows.begin(), rows.end(), std::greater_equal<uint32_t>()) == rows.end();
    return !rows.empty() && ascends && (rows.size() == 1 || rows.front() == 1) &&
           std::all_of(rows.begin(), rows.end(), [&](uint32_t n) { return has(base, n); });
}

// What every compiler that could be had holds in registers, without spills and with enough subgroups at once to hide what memory takes:
// tests/compilers/CENSUS.md. A size that is left out for one compiler's sake says so here.
void choose_gpu_sizes(const DeviceCaps& caps, Tuning& tuning) {
    // Memory-bound: padding rows is free, few variants. With one step at a time a matrix of 3072 outputs has 1.5 MB of loads
    // in flight, and memory that gives 3 TB/s after 0.7 µs wants 2 MB.
    tuning.matvec_rows = tuning.matvec_quant_rows = {1, 2, 4, 8};
    tuning.matvec_teams = 4;
    tuning.matvec_outs = 2;
    tuning.matvec_ahead = 4;
    // A lane reads its part of x for every row: 8 rows and 2 outputs are 9 bytes of the L1 cache for each byte of bf16, with 4 outputs 5.
    // But with 4, or with two steps at once, 8 rows of blocks leave AMD's devices 4 subgroups of 16, or spill.
    tuning.matvec_many_outs = 2;
    tuning.matvec_many_ahead = 1;
    tuning.matvec_least_teams = 1024; // of an H200 with 3072 outputs, 1536 teams are quicker than 768
    switch (caps.vendor_id) {
    case kVendorNvidia: // NVK holds 16 rows of plain formats with 2 outputs from Mesa 26 on; of blocks it spills them
        if (caps.driver_id != VK_DRIVER_ID_MESA_NVK || caps.driver_version >= VK_MAKE_API_VERSION(0, 26, 0, 0)) tuning.matvec_rows.push_back(16);
        if (caps.driver_id != VK_DRIVER_ID_NVIDIA_PROPRIETARY) break;
        // H200, driver 580: a lane's 16 bytes of x are 128 from its neighbour's where weights are blocks, and the L1 cache takes a turn for
        // each. Through shared memory a pass of 1 row is 3 times as fast, one of 8 rows 4 times; of 16 rows x does not fit.
        tuning.matvec_staged_bytes = staged_choices(caps).back();
        tuning.matvec_outs = tuning.matvec_many_outs = 4;
        tuning.matvec_teams = 8;
        tuning.norm_stage_rows = 3; // of Llama-3.2-3B in bf16 a pass of 8 rows is 1.2 times as fast so, one of 2 rows 1.09 times as slow; of blocks 2 rows take longer without than 4 with
        tuning.matrix_rows = 64;
        tuning.matrix_least_groups = 192; // of an H200 with 132 multiprocessors: 64 rows by 3072 x 3072 are 2.4 times as fast in 96 as in 24
        break;
    case kVendorAmd: // GCN has 256 registers a lane at one subgroup of ten: with 4 steps of two rows there are 2
        if (caps.subgroup_size_min == 64) tuning.matvec_ahead = 2;
        // ACO of Mesa 22 gives RDNA3 144 registers, too few for three heads of 128 dimensions; later ones 256. Caps do not tell RDNA3 from
        // others, whose groups of such heads then read keys and values twice with that Mesa, too.
        if (caps.driver_id == VK_DRIVER_ID_MESA_RADV && caps.driver_version < VK_MAKE_API_VERSION(0, 23, 0, 0)) tuning.attention_dims = 256;
        break;
    case kVendorIntel: // a lane of 8 has 128 registers, and so has one of 16 from Xe2 on; 8 rows of blocks spill with every choice
        tuning.matvec_quant_rows.pop_back();
        tuning.matvec_sums = 8;
        tuning.attention_dims = 128;
        tuning.prompt_dims = 2048;
        // Sums of a subgroup fill half of a thread's registers: 2 KiB, 4 from Xe2 on. Those of attention would fill all of them.
        tuning.matrix_rows = tuning.lanes <= 8 ? 16 : 32;
        tuning.matrix_outs = 32;
        tuning.matrix_attention = false;
        break;
    default: break;
    }
}
} // namespace

Tuning choose_tuning(const DeviceCaps& caps, DType cache_dtype) {
    Tuning tuning;
    // One subgroup size for every kernel, or none: shuffles need to know it. NVIDIA and llvmpipe have one size; AMD's GCN lets nobody
    // choose, and says that its smallest is its largest.
    const bool has_one = caps.vendor_id == kVendorNvidia || is_llvmpipe(caps);
    const bool says_one = caps.full_subgroups && caps.subgroup_size_min == caps.subgroup_size_max;
    uint32_t lanes = caps.subgroup_size;
    if (caps.subgroup_size_control && caps.subgroup_size_min <= 32 && 32 <= caps.subgroup_size_max) lanes = 32;
    // Intel's registers are a thread's: the fewer lanes share them, the more each has.
    if (caps.subgroup_size_control && caps.vendor_id == kVendorIntel) lanes = caps.subgroup_size_min;
    bool power_of_two = lanes >= 8 && lanes <= 64 && (lanes & (lanes - 1)) == 0;
    tuning.subgroup = caps.subgroup_shuffle && (caps.subgroup_size_control || has_one || says_one) && power_of_two;
    tuning.lanes = tuning.subgroup ? lanes : 32;
    tuning.pinned_subgroup_size = tuning.subgroup && caps.subgroup_size_control ? lanes : 0;
    tuning.full_subgroups = tuning.pinned_subgroup_size > 0 || (tuning.subgroup && !has_one);

    // lavapipe waits for the device to be idle before it tells a query's result.
    tuning.copies_times = is_llvmpipe(caps);
    tuning.translates_at_dispatch = is_llvmpipe(caps);

    // Metal has no buffers that workgroups of one dispatch see each other's writes in.
    tuning.attention_combines = caps.driver_id != VK_DRIVER_ID_MOLTENVK;

    if (caps.type == VK_PHYSICAL_DEVICE_TYPE_CPU) {
        // Compute-bound: every row count is built, and many outputs share the activations a team loads. No tile is larger than 8 rows:
        // 16 need as long a loop as compilers bear for half as many outputs, and then x is what takes the time.
        tuning.matvec_rows = {1, 2, 3, 4, 5, 6, 7, 8};
        tuning.matvec_quant_rows = {1, 2, 4, 6, 8};
        tuning.matvec_outs = tuning.matvec_many_outs = 8;
        tuning.norm_stage_rows = 1; // squares of every row in every workgroup cost more than a dispatch
        tuning.attention_rows = 8; // reading keys costs more than weighing them; GPUs would rather have more workgroups
        tuning.wide = tuning.subgroup && tuning.lanes == 8 && caps.shader_int64 && caps.max_texels >= caps.max_storage_buffer_range / 4;
        // llvmpipe reads storage buffers element by element, with a branch for each or a gather, and texels whole.
        tuning.texels = tuning.wide && is_llvmpipe(caps);
        tuning.tiles_weights = tuning.wide;
        tuning.prompt_by_rows = true;
        tuning.matrix_rows = tuning.matrix_outs = 16; // each product is hundreds of instructions
        tuning.vocab_threads = 8; // a barrier costs per subgroup
    } else {
        choose_gpu_sizes(caps, tuning);
        // A tile of 8 keys is three loads one after the other and twenty exchanges: 16 of them in turn would take longer than a layer's weights.
        if (caps.max_shared_memory_bytes >= 32768) tuning.attention_teams = std::bit_floor(std::clamp(caps.max_workgroup_invocations / tuning.lanes, 1u, 8u));
    }
    tuning.int8_drafts = has(int8_draft_choices(tuning, caps), 1u);
    // Shared memory gives fewer floats than there are multipliers; halves are twice as many.
    tuning.matmul_parts = cache_dtype != DType::f32 ? 1 : 0;
    if (!times_matrices(caps)) tuning = with_matrices(tuning, caps);
    if (!tuning.matrix && !caps.shader_float16) tuning.matmul_parts = 0;
    tuning.prompt_attention = caps.max_shared_memory_bytes >= 32768;
    tuning.matvec_teams = std::min(tuning.matvec_teams, std::max(caps.max_workgroup_invocations / tuning.lanes, 1u));
    while (tuning.vocab_threads > caps.max_workgroup_invocations) tuning.vocab_threads /= 2;
    return tuning;
}

bool times_matrices(const DeviceCaps& caps) {
    return caps.vendor_id == kVendorIntel; // Mesa 25.0 claims units for Tiger Lake, which emulates them
}

Tuning with_matrices(Tuning tuning, const DeviceCaps& caps) {
    // The kernel has four subgroups of a known size.
    if (!caps.matrix || !tuning.subgroup || caps.max_shared_memory_bytes < 32768 || caps.max_workgroup_invocations < 4 * tuning.lanes) return tuning;
    tuning.matmul_parts = tuning.matmul_parts == 0 ? 2 : 1; // what f32 products become has to be as good
    tuning.matrix = caps.matrix;
    return tuning;
}

Tuning without_matrices(const Tuning& tuning, const DeviceCaps& caps) {
    Tuning without = tuning;
    without.matrix = {};
    without.matmul_parts = tuning.matmul_parts == 1 && caps.shader_float16 ? 1 : 0; // two parts were as good as f32
    return without;
}

std::vector<uint32_t> outs_choices() {
    return {2, 4, 8, 16};
}

std::vector<uint32_t> many_outs_choices() {
    return {2, 4, 8};
}

std::vector<uint32_t> ahead_choices() {
    return {1, 2, 4};
}

std::vector<uint32_t> teams_choices(const Tuning& base, const DeviceCaps& caps) {
    std::vector<uint32_t> choices = {1, 2, 4, 8};
    std::erase_if(choices, [&](uint32_t teams) { return teams * base.lanes > std::min(caps.max_workgroup_invocations, caps.max_workgroup_size_x); });
    return choices;
}

std::vector<uint32_t> norm_stage_choices() {
    return {0, 3, 2, 1};
}

std::vector<uint32_t> staged_choices(const DeviceCaps& caps) {
    return {0, std::min(caps.max_shared_memory_bytes, 65536u)};
}

std::vector<uint32_t> int8_draft_choices(const Tuning& base, const DeviceCaps& caps) {
    return caps.quick_integer_dots && base.subgroup && !base.wide ? std::vector<uint32_t>{0, 1} : std::vector<uint32_t>{0};
}

std::vector<uint32_t> vocab_threads_choices(const DeviceCaps& caps) {
    std::vector<uint32_t> choices = {8, 32, 64, 128, 256};
    std::erase_if(choices, [&](uint32_t threads) { return threads > std::min(caps.max_workgroup_invocations, caps.max_workgroup_size_x); });
    return choices;
}

std::vector<uint32_t> attention_rows_choices() {
    return {1, 2, 4, 8};
}

namespace {
bool fits(const Tuning& t, uint32_t weight_parts, MatrixTile tile, const DeviceCaps& caps) {
    return gpu::matrix_shared_bytes(t.matmul_parts, weight_parts, tile.rows, tile.outs, tile.blocks, t.matrix.m, t.matrix.n) <= caps.max_shared_memory_bytes;
}
} // namespace

uint32_t matrix_outs_of(const Tuning& tuning, uint32_t weight_parts, const DeviceCaps& caps) {
    uint32_t outs = tuning.matrix_outs;
    while (outs > tuning.matrix.n && !fits(tuning, weight_parts, {tuning.matrix_rows, outs, tuning.matrix_blocks}, caps)) outs /= 2;
    return outs;
}

namespace {
MatrixTile largest_tile(const Tuning& tuning, uint32_t weight_parts, const DeviceCaps& caps) {
    return {tuning.matrix_rows, matrix_outs_of(tuning, weight_parts, caps), tuning.matrix_blocks};
}
uint32_t least_tile_rows(const Tuning& tuning) { return std::max(tuning.matrix.m, 32u); }
uint32_t least_tile_outs(const Tuning& tuning) { return std::max(tuning.matrix.n, 16u); }
} // namespace

std::string MatrixTile::text() const {
    return std::to_string(rows) + " x " + std::to_string(outs) + (blocks > 1 ? " x " + std::to_string(32 * blocks) : "");
}

MatrixTile matrix_tile_of(const Tuning& tuning, uint32_t weight_parts, uint32_t n_rows, uint32_t n_outs, const DeviceCaps& caps) {
    MatrixTile tile = largest_tile(tuning, weight_parts, caps);
    const auto groups = [&] { return ceil_div(n_rows, 2 * tile.rows) * ceil_div(n_outs, 2 * tile.outs); };
    while (groups() < tuning.matrix_least_groups && tile.rows > least_tile_rows(tuning) && tile.rows >= n_rows) tile.rows /= 2; // half of it would be idle
    while (groups() < tuning.matrix_least_groups && tile.outs > least_tile_outs(tuning)) tile.outs /= 2;
    return tile;
}

std::vector<MatrixTile> matrix_tiles(const Tuning& tuning, uint32_t weight_parts, const DeviceCaps& caps) {
    const MatrixTile largest = largest_tile(tuning, weight_parts, caps);
    if (tuning.matrix_least_groups == 0) return {largest};
    std::vector<MatrixTile> tiles;
    for (uint32_t rows = largest.rows; rows == largest.rows || rows >= least_tile_rows(tuning); rows /= 2)
        for (uint32_t outs = largest.outs; outs == largest.outs || outs >= least_tile_outs(tuning); outs /= 2) tiles.push_back({rows, outs, largest.blocks});
    return tiles;
}

std::vector<MatrixTile> matrix_tile_choices(const Tuning& base, const DeviceCaps& caps) {
    if (!base.prompts_use_matrices()) return {};
    // More rows or outputs read less of shared memory for a product; fewer make more workgroups of a short prompt.
    // More k at once wait less often for memory.
    std::vector<MatrixTile> choices = {{32, 32}, {32, 64}, {64, 32}, {64, 64}, {32, 32, 2}, {32, 64, 2}, {64, 32, 2}, {64, 64, 2}};
    if (caps.vendor_id == kVendorIntel) choices = base.lanes <= 8 ? std::vector<MatrixTile>{{16, 16}, {16, 32}} : std::vector<MatrixTile>{{16, 32}, {32, 32}};
    std::erase_if(choices, [&](MatrixTile tile) {
        Tuning tuning = base;
        tuning.matrix_rows = tile.rows;
        tuning.matrix_outs = tile.outs;
        tuning.matrix_blocks = tile.blocks;
        return tile.rows % base.matrix.m != 0 || tile.outs % base.matrix.n != 0 || !fits(base, 1, tile, caps) ||
               !fits(base, base.matmul_parts, {tile.rows, matrix_outs_of(tuning, base.matmul_parts, caps), tile.blocks}, caps);
    });
    return choices;
}

bool may_choose(const Tuning& tuning, const Tuning& base, const DeviceCaps& caps) {
    const MatrixTile tile = {tuning.matrix_rows, tuning.matrix_outs, tuning.matrix_blocks};
    const Tuning matrices = times_matrices(caps) ? with_matrices(base, caps) : base;
    const bool takes_matrices = tuning.matrix != base.matrix && tuning.matrix == matrices.matrix;
    Tuning rest = takes_matrices ? without_matrices(tuning, caps) : tuning; // with base's choices
    rest.wide = base.wide;
    rest.texels = base.texels;
    rest.norm_stage_rows = base.norm_stage_rows;
    rest.matvec_teams = base.matvec_teams;
    rest.matvec_outs = base.matvec_outs;
    rest.matvec_many_outs = base.matvec_many_outs;
    rest.matvec_ahead = base.matvec_ahead;
    rest.matvec_many_ahead = base.matvec_many_ahead;
    rest.matvec_staged_bytes = base.matvec_staged_bytes;
    rest.int8_drafts = base.int8_drafts;
    rest.matvec_rows = base.matvec_rows;
    rest.matvec_quant_rows = base.matvec_quant_rows;
    rest.vocab_threads = base.vocab_threads;
    rest.attention_rows = base.attention_rows;
    rest.matrix_rows = base.matrix_rows;
    rest.matrix_outs = base.matrix_outs;
    rest.matrix_blocks = base.matrix_blocks;
    return rest == base && (base.wide || !tuning.wide) && (base.wide || !tuning.texels) &&
           (tuning.matvec_teams == base.matvec_teams || has(teams_choices(base, caps), tuning.matvec_teams)) &&
           (tuning.matvec_outs == base.matvec_outs || has(outs_choices(), tuning.matvec_outs)) &&
           (tuning.matvec_many_outs == base.matvec_many_outs || has(many_outs_choices(), tuning.matvec_many_outs)) &&
           (tuning.matvec_ahead == base.matvec_ahead || has(ahead_choices(), tuning.matvec_ahead)) &&
           (tuning.matvec_many_ahead == base.matvec_many_ahead || has(ahead_choices(), tuning.matvec_many_ahead)) &&
           (tuning.norm_stage_rows == base.norm_stage_rows || has(norm_stage_choices(), tuning.norm_stage_rows)) &&
           (tuning.matvec_staged_bytes == base.matvec_staged_bytes || has(staged_choices(caps), tuning.matvec_staged_bytes)) &&
           (tuning.int8_drafts == base.int8_drafts || has(int8_draft_choices(base, caps), uint32_t(tuning.int8_drafts))) &&
           may_build(tuning.matvec_rows, base.matvec_rows) && may_build(tuning.matvec_quant_rows, base.matvec_quant_rows) &&
           (tuning.vocab_threads == base.vocab_threads || has(vocab_threads_choices(caps), tuning.vocab_threads)) &&
           (tuning.attention_rows == base.attention_rows || has(attention_rows_choices(), tuning.attention_rows)) &&
           (tile == MatrixTile{base.matrix_rows, base.matrix_outs, base.matrix_blocks} || has(matrix_tile_choices(takes_matrices ? matrices : base, caps), tile));
}

std::string norms_text(uint32_t norm_stage_rows) {
    return norm_stage_rows == 0 ? "within" : norm_stage_rows == 1 ? "as stages" : "as stages from " + std::to_string(norm_stage_rows) + " rows on";
}

std::string Tuning::sizes() const {
    auto list = [](const std::vector<uint32_t>& rows) {
        std::string text;
        for (uint32_t n : rows) text += " " + std::to_string(n);
        return text;
    };
    const std::string outs = std::to_string(matvec_outs) + " or " + std::to_string(matvec_many_outs) + " outputs";
    const std::string loops = wide ? (texels ? "wide, by texels" : "wide")
                                   : outs + " x " + std::to_string(matvec_teams) + " teams, " + std::to_string(matvec_ahead) + " or " + std::to_string(matvec_many_ahead) + " steps at once" +
                                         (matvec_staged_bytes > 0 ? "; x of blocks by shared memory" : "") +
                                         (int8_drafts ? "; of drafts' blocks in 8 bits" : "");
    const std::string blocks = matvec_rows == matvec_quant_rows ? "" : "; of blocks" + list(matvec_quant_rows);
    return loops + "; norms " + norms_text(norm_stage_rows) + "; rows" + list(matvec_rows) + blocks + "; vocabulary by " +
           std::to_string(vocab_threads) + "; attention by " + std::to_string(attention_rows) + (attention_rows == 1 ? " row" : " rows") +
           (prompts_use_matrices() ? "; matrix tiles of " + MatrixTile{matrix_rows, matrix_outs, matrix_blocks}.text() : "");
}

std::string Tuning::numerics_id() const {
    std::string id = "n1-l" + std::to_string(lanes) + "-s" + std::to_string(attention_split);
    if (attention_teams > 1) id += "-t" + std::to_string(attention_teams);
    if (prompt_by_rows) return id + "-r";
    if (prompt_attention) id += matrix && matrix_attention ? "-pm" : prompt_dims < 4096 ? "-p" + std::to_string(prompt_dims) : "-p";
    if (matmul_parts > 0) id += matrix ? "-m" + std::to_string(matmul_parts) : "-h";
    return id;
}

} // namespace auspex
