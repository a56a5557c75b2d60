// Which kernels prompts go through follows from a device's caps, and the numerics id says so; what timing may choose fits the device.
#include "kernels/tuning.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace auspex::tuning_test {
namespace {

DeviceCaps desktop_gpu() {
    DeviceCaps caps;
    caps.type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    caps.vendor_id = 0x10de;
    caps.subgroup_size = caps.subgroup_size_min = caps.subgroup_size_max = 32;
    caps.subgroup_size_control = caps.subgroup_shuffle = true;
    caps.max_shared_memory_bytes = 49152;
    caps.max_workgroup_invocations = 1024;
    caps.matrix = {16, 16, 16};
    return caps;
}

TEST(Tuning, sends_prompts_to_the_best_units_a_device_has) {
    const Tuning best = choose_tuning(desktop_gpu(), DType::f32);
    EXPECT_EQ(best.matmul_parts, 2u);
    EXPECT_EQ(best.matrix.k, 16u);
    EXPECT_EQ(best.numerics_id(), "n1-l32-s128-t8-pm-m2");
    for (DType rounding : {DType::f16, DType::q8_0}) EXPECT_EQ(choose_tuning(desktop_gpu(), rounding).numerics_id(), "n1-l32-s128-t8-pm-m1");

    DeviceCaps caps = desktop_gpu();
    caps.matrix = {};
    EXPECT_EQ(choose_tuning(caps).numerics_id(), "n1-l32-s128-t8-p");
    caps.shader_float16 = true;
    for (DType rounding : {DType::f16, DType::q8_0}) EXPECT_EQ(choose_tuning(caps, rounding).numerics_id(), "n1-l32-s128-t8-p-h");
    EXPECT_EQ(choose_tuning(caps, DType::f32).numerics_id(), "n1-l32-s128-t8-p");

    caps = desktop_gpu();
    caps.subgroup_size_control = false;
    caps.vendor_id = 0x1002; // a size nobody knows: no matrices for subgroups
    EXPECT_EQ(choose_tuning(caps).numerics_id(), "n1-l32-s128-t8-p");

    caps = desktop_gpu();
    caps.max_shared_memory_bytes = 16384; // what every device has
    EXPECT_EQ(choose_tuning(caps).numerics_id(), "n1-l32-s128");

    caps = desktop_gpu();
    caps.max_workgroup_invocations = 127; // below 4 subgroups
    EXPECT_EQ(choose_tuning(caps).numerics_id(), "n1-l32-s128-t2-p");

    caps = desktop_gpu();
    caps.type = VK_PHYSICAL_DEVICE_TYPE_CPU;
    caps.shader_float16 = true;
    EXPECT_EQ(choose_tuning(caps).numerics_id(), "n1-l32-s128-r");
}

// The subgroups of each maker's devices, as their drivers describe them.
TEST(Tuning, takes_the_subgroups_that_suit_a_compiler) {
    DeviceCaps intel = desktop_gpu();
    intel.vendor_id = 0x8086;
    intel.full_subgroups = true;
    intel.subgroup_size_max = 32;
    for (uint32_t least : {8u, 16u}) { // before Xe2, and from it
        intel.subgroup_size_min = least;
        const Tuning tuning = choose_tuning(intel);
        EXPECT_EQ(tuning.lanes, least);
        EXPECT_EQ(tuning.pinned_subgroup_size, least);
        EXPECT_NE(tuning.numerics_id().find("-l" + std::to_string(least) + "-"), std::string::npos);
    }

    DeviceCaps gcn = desktop_gpu();
    gcn.vendor_id = 0x1002;
    gcn.matrix = {};
    gcn.subgroup_size = gcn.subgroup_size_min = gcn.subgroup_size_max = 64;
    gcn.subgroup_size_control = false; // nobody may choose
    gcn.full_subgroups = true;
    const Tuning tuning = choose_tuning(gcn);
    EXPECT_TRUE(tuning.subgroup);
    EXPECT_EQ(tuning.lanes, 64u);
    EXPECT_EQ(tuning.pinned_subgroup_size, 0u);
    EXPECT_TRUE(tuning.full_subgroups);
    gcn.full_subgroups = false; // smallest and largest only repeat the default
    EXPECT_FALSE(choose_tuning(gcn).subgroup);
    gcn.full_subgroups = true;
    gcn.subgroup_size_max = 128;
    EXPECT_FALSE(choose_tuning(gcn).subgroup);
}

// 16 rows where a compiler is known to hold them, or is not known.
TEST(Tuning, builds_tiles_that_fit_into_registers) {
    DeviceCaps caps = desktop_gpu();
    const std::vector<uint32_t> to_8 = {1, 2, 4, 8}, to_16 = {1, 2, 4, 8, 16};
    caps.driver_id = VK_DRIVER_ID_NVIDIA_PROPRIETARY;
    EXPECT_EQ(choose_tuning(caps).matvec_rows, to_16);
    EXPECT_EQ(choose_tuning(caps).matvec_quant_rows, to_8);
    caps.driver_id = VK_DRIVER_ID_MESA_NVK;
    caps.driver_version = VK_MAKE_API_VERSION(0, 25, 3, 9);
    EXPECT_EQ(choose_tuning(caps).matvec_rows, to_8);
    caps.driver_version = VK_MAKE_API_VERSION(0, 26, 0, 0);
    EXPECT_EQ(choose_tuning(caps).matvec_rows, to_16);
    EXPECT_EQ(choose_tuning(caps).matvec_quant_rows, to_8);
    for (uint32_t vendor : {0x1002u, 0x8086u, 0x5143u}) {
        caps.vendor_id = vendor;
        EXPECT_LE(choose_tuning(caps).matvec_rows.back(), 8u);
        EXPECT_LE(choose_tuning(caps).matvec_quant_rows.back(), 8u);
    }
}

TEST(Tuning, does_without_matrix_units_as_if_there_were_none) {
    DeviceCaps caps = desktop_gpu();
    for (bool float16 : {false, true})
        for (DType cache : {DType::f16, DType::f32, DType::q8_0}) {
            caps.shader_float16 = float16;
            caps.matrix = {16, 16, 16};
            const Tuning without = without_matrices(choose_tuning(caps, cache), caps);
            caps.matrix = {};
            EXPECT_EQ(without, choose_tuning(caps, cache)) << float16 << ", " << static_cast<int>(cache);
        }
}

// Bytes of slabs of 32 or 64 k, padded by 8 halves, of a workgroup's rows and outputs, and of four tiles of sums.
uint32_t shared_bytes(uint32_t x_parts, uint32_t weight_parts, MatrixTile tile, uint32_t results) {
    return 2 * (x_parts * tile.rows + weight_parts * tile.outs) * 2 * (32 * tile.blocks + 8) + 4 * results * 4;
}

TEST(Tuning, offers_matrix_tiles_that_fit_into_shared_memory) {
    DeviceCaps caps = desktop_gpu();
    const Tuning base = choose_tuning(caps);
    EXPECT_EQ(matrix_tile_choices(base, caps), (std::vector<MatrixTile>{{32, 32}, {32, 64}, {64, 32}, {64, 64}, {32, 32, 2}, {32, 64, 2}, {64, 32, 2}, {64, 64, 2}}));
    for (uint32_t bytes : {32768u, 34815u, 34816u, 49152u, 65536u})
        for (uint32_t parts : {1u, 2u})
            for (uint32_t edge : {8u, 16u}) {
                caps.max_shared_memory_bytes = bytes;
                caps.matrix = {edge, edge, edge};
                Tuning tuning = choose_tuning(caps);
                tuning.matmul_parts = parts;
                const std::vector<MatrixTile> tiles = matrix_tile_choices(tuning, caps);
                EXPECT_NE(std::find(tiles.begin(), tiles.end(), MatrixTile{tuning.matrix_rows, tuning.matrix_outs}), tiles.end()) << "the default";
                for (uint32_t blocks : {1u, 2u}) {
                    const MatrixTile large = {64, 64, blocks};
                    const bool large_fits = shared_bytes(parts, 1, large, edge * edge) <= bytes;
                    EXPECT_EQ(std::find(tiles.begin(), tiles.end(), large) != tiles.end(), large_fits) << bytes << ", " << parts << ", " << edge << ", " << blocks;
                }
                for (const MatrixTile& tile : tiles) {
                    tuning.matrix_rows = tile.rows;
                    tuning.matrix_outs = tile.outs;
                    tuning.matrix_blocks = tile.blocks;
                    EXPECT_EQ(matrix_outs_of(tuning, 1, caps), tile.outs);
                    const uint32_t outs = matrix_outs_of(tuning, parts, caps); // of block formats and f32
                    EXPECT_LE(shared_bytes(parts, parts, {tile.rows, outs, tile.blocks}, edge * edge), bytes);
                    EXPECT_EQ(outs % edge, 0u);
                    EXPECT_TRUE(outs == tile.outs || shared_bytes(parts, parts, {tile.rows, 2 * outs, tile.blocks}, edge * edge) > bytes) << "halved for nothing";
                }
            }
    Tuning without = base;
    without.matrix = {};
    EXPECT_TRUE(matrix_tile_choices(without, desktop_gpu()).empty());
    without = base;
    without.prompt_by_rows = true;
    EXPECT_TRUE(matrix_tile_choices(without, desktop_gpu()).empty());
}

// Enough workgroups for a device with many units, and no fewer than wanted where rows and outputs are many.
TEST(Tuning, gives_small_products_small_tiles) {
    DeviceCaps caps = desktop_gpu();
    caps.driver_id = VK_DRIVER_ID_NVIDIA_PROPRIETARY;
    Tuning tuning = choose_tuning(caps);
    const auto tile = [&](uint32_t n_rows, uint32_t n_outs) { return matrix_tile_of(tuning, 1, n_rows, n_outs, caps); };
    EXPECT_EQ(tile(512, 16384), (MatrixTile{64, 64}));
    EXPECT_EQ(tile(512, 3072), (MatrixTile{64, 32}));
    EXPECT_EQ(tile(64, 16384), (MatrixTile{32, 32}));
    EXPECT_EQ(tile(64, 3072), (MatrixTile{32, 16}));
    EXPECT_EQ(tile(1, 1), (MatrixTile{32, 16}));
    const std::vector<MatrixTile> all = matrix_tiles(tuning, 1, caps);
    EXPECT_EQ(all, (std::vector<MatrixTile>{{64, 64}, {64, 32}, {64, 16}, {32, 64}, {32, 32}, {32, 16}}));
    for (uint32_t rows : {1u, 33u, 100u, 512u})
        for (uint32_t outs : {1u, 1000u, 5000u, 20000u}) EXPECT_NE(std::find(all.begin(), all.end(), tile(rows, outs)), all.end()) << rows << " x " << outs;
    tuning.matrix_least_groups = 0;
    EXPECT_EQ(tile(64, 3072), (MatrixTile{64, 64}));
    EXPECT_EQ(matrix_tiles(tuning, 1, caps), (std::vector<MatrixTile>{{64, 64}}));
}

TEST(Tuning, rounds_x_of_drafts_where_four_products_are_an_instruction) {
    DeviceCaps quick = desktop_gpu(), slow = desktop_gpu();
    slow.integer_dots = quick.integer_dots = quick.quick_integer_dots = true;
    const Tuning rounded = choose_tuning(quick), whole = choose_tuning(slow);
    EXPECT_TRUE(rounded.int8_drafts);
    EXPECT_FALSE(whole.int8_drafts);
    EXPECT_EQ(rounded.numerics_id(), whole.numerics_id()); // texts are the same
    EXPECT_NE(rounded.sizes(), whole.sizes());
    Tuning other = rounded;
    other.int8_drafts = false;
    EXPECT_TRUE(may_choose(other, rounded, quick)); // by timing
    other = whole;
    other.int8_drafts = true;
    EXPECT_FALSE(may_choose(other, whole, slow));
    quick.subgroup_shuffle = false; // there is no such kernel by shared memory
    EXPECT_FALSE(choose_tuning(quick).int8_drafts);
    quick = desktop_gpu();
    quick.integer_dots = quick.quick_integer_dots = true;
    quick.type = VK_PHYSICAL_DEVICE_TYPE_CPU;
    quick.subgroup_size = quick.subgroup_size_min = quick.subgroup_size_max = 8;
    quick.shader_int64 = true;
    EXPECT_FALSE(choose_tuning(quick).int8_drafts) << "wide variants have none";
}

TEST(Tuning, names_what_timing_chooses) {
    Tuning tuning = choose_tuning(desktop_gpu());
    EXPECT_NE(tuning.sizes().find("; attention by 1 row; matrix tiles of 32 x 64"), std::string::npos) << tuning.sizes();
    tuning.attention_rows = 4;
    tuning.matrix_outs = 32;
    EXPECT_NE(tuning.sizes().find("; attention by 4 rows; matrix tiles of 32 x 32"), std::string::npos) << tuning.sizes();
    tuning.matrix_blocks = 2;
    EXPECT_NE(tuning.sizes().find("; matrix tiles of 32 x 32 x 64"), std::string::npos) << tuning.sizes();
    tuning.prompt_by_rows = true;
    EXPECT_EQ(tuning.sizes().find("matrix"), std::string::npos) << tuning.sizes();
}

} // namespace
} // namespace auspex::tuning_test
