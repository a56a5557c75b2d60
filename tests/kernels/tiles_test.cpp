// Weights in tiles: whatever reads them gets the bits that it gets from rows, which have tests of their own.
#include "kernels/embed.h"
#include "kernels/gate_up.h"
#include "kernels/linear.h"
#include "kernels/random_fill.h"

namespace auspex::tiles_test {
namespace {

constexpr uint32_t kOut = 96, kCols = 192, kShard = 64; // three tiles of steps; a whole shard and half of one

class Tiles : public LinearTest {
  protected:
    Tensor in_rows(DType dtype) {
        std::vector<float> values = random_floats(kOut * kCols, 1);
        return tensor(values, kOut, kCols, dtype, kShard);
    }

    void expect_bits_of_rows(DType dtype, Variant variant, const std::vector<uint32_t>& counts) {
        const Tensor rows = in_rows(dtype), tiles = in_tiles(rows);
        KernelLibrary& library = kernels(variant);
        for (uint32_t n : counts) {
            SCOPED_TRACE(std::string(dtype_name(dtype)) + ", " + variant_name(variant) + ", " + std::to_string(n) + " rows");
            const std::vector<float> x = random_floats(n * kCols, n), before = random_floats(n * kOut, n + 1);
            EXPECT_TRUE(same_bits(multiply(library, kMatvec, tiles, x, &before), multiply(library, kMatvec, rows, x, &before)));
            EXPECT_TRUE(same_bits(multiply(library, kMatmul, tiles, x), multiply(library, kMatmul, rows, x)));
            const Normed in = normed(x, kCols);
            const auto after_norm = [&](const Tensor& weight) {
                const Buffer sums = output<float>(n * kOut), halves = output<float>(n * kOut / 2);
                run(library, [&](Recorder& to) {
                    record_normed_matvec(to, weight, in.rows, sums.view(), kOut);
                    record_gate_up(to, weight, in.rows, halves.view(), kOut / 2);
                });
                std::vector<float> both = floats(sums, n * kOut), gated = floats(halves, n * kOut / 2);
                both.insert(both.end(), gated.begin(), gated.end());
                return both;
            };
            EXPECT_TRUE(same_bits(after_norm(tiles), after_norm(rows)));
        }
    }
};

TEST_F(Tiles, give_the_bits_of_rows) {
    expect_bits_of_rows(DType::bf16, Variant::native, {1, 2, 5, 8, 12, 17});
}
TEST_F(Tiles, give_the_bits_of_rows_in_other_formats) {
    for (DType dtype : {DType::f16, DType::f32}) expect_bits_of_rows(dtype, Variant::native, {1, 3});
}
TEST_F(Tiles, give_the_bits_of_rows_however_they_are_read) {
    for (Variant variant : {Variant::other_fetches, Variant::shuffles, Variant::shared, Variant::tiles, Variant::matrices, Variant::halves})
        expect_bits_of_rows(DType::bf16, variant, {1, 5});
}

TEST_F(Tiles, are_gathered) {
    for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
        const Tensor rows = in_rows(dtype), tiles = in_tiles(rows);
        std::vector<gpu::Row> tokens;
        for (uint32_t token = 0; token < kOut; ++token) tokens.push_back(plain_row(token, 0, token));
        const Buffer token_buffer = upload(tokens), from_rows = output<float>(kOut * kCols), from_tiles = output<float>(kOut * kCols);
        run([&](Recorder& to) {
            record_embed(to, rows, token_buffer.view(), kOut, from_rows.view(), kCols);
            record_embed(to, tiles, token_buffer.view(), kOut, from_tiles.view(), kCols);
        });
        EXPECT_TRUE(same_bits(floats(from_tiles, kOut * kCols), floats(from_rows, kOut * kCols))) << dtype_name(dtype);
    }
}

TEST_F(Tiles, of_random_weights_hold_the_rows_of_the_same_seed) {
    for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
        const Tensor rows = in_rows(dtype), tiles = in_tiles(rows);
        run([&](Recorder& to) {
            record_random_fill(to, rows, 7, 0.1f);
            record_random_fill(to, tiles, 7, 0.1f);
        });
        const Tensor expected = in_tiles(rows);
        for (size_t i = 0; i < tiles.shards.size(); ++i) {
            const Buffer &found = tiles.shards[i].buffer, &wanted = expected.shards[i].buffer;
            EXPECT_EQ(std::memcmp(found.mapped(), wanted.mapped(), wanted.size()), 0) << dtype_name(dtype) << ", shard " << i;
        }
    }
}

} // namespace
} // namespace auspex::tiles_test
