// The fused attention input has the bits of its parts, which have tests of their own against the reference, in q and in
// every byte of the caches; whether it norms by itself or not.
#include "kernels/normed_matvec.h"
#include "kernels/prenorm.h"
#include "kernels/qkv.h"

#include "kernels/cache_fixture.h"

namespace auspex::qkv_test {
namespace {

class Qkv : public CacheTest, public ::testing::WithParamInterface<HeadCase> {
  protected:
    static std::vector<gpu::Row> some_rows() {
        std::vector<gpu::Row> rows{plain_row(0, 0, 0), plain_row(0, 1, 17), plain_row(0, 2, 55), plain_row(0, 1, 40), plain_row(0, 2, 30), plain_row(0, 2, 30)};
        rows[2].live = 0;
        rows[4].kv_index = 31; // siblings of a tree: one position, two places
        rows[5].kv_index = 32;
        return rows;
    }
    static std::vector<uint32_t> words(const PagedCache& cache, const Buffer& pool) {
        const auto* first = reinterpret_cast<const uint32_t*>(pool.mapped());
        return {first, first + cache.words(pool)};
    }

    void expect_bits_of_the_parts(DType dtype, uint32_t cols, uint32_t shard_rows, uint32_t n_rows, bool tiled = false, bool after_norm = false) {
        const HeadCase c = GetParam();
        const uint32_t width = (c.group + 2) * c.n_kv_heads * c.head_dim, q_width = c.group * c.n_kv_heads * c.head_dim;
        SCOPED_TRACE(std::string(dtype_name(dtype)) + ", " + std::to_string(n_rows) + " rows" + (after_norm ? " after a norm" : ""));
        std::vector<float> values = random_floats(size_t{width} * cols, 5);
        const Tensor rows_of_weights = is_quantized(dtype) ? quantized_tensor(values, width, cols, dtype, 6, shard_rows) : tensor(values, width, cols, dtype, shard_rows);
        const Tensor tiles = tiled ? in_tiles(rows_of_weights) : Tensor();
        const Tensor& weight = tiled ? tiles : rows_of_weights;
        std::vector<float> padded = random_floats(size_t{n_rows} * padded_width(cols), 7), norm = random_floats(padded_width(cols), 8);
        for (uint32_t i = cols; i < padded_width(cols); ++i) {
            norm[i] = 0;
            for (uint32_t r = 0; r < n_rows; ++r) padded[r * padded_width(cols) + i] = 0;
        }
        const std::vector<gpu::Row> all = some_rows(), rows(all.begin(), all.begin() + n_rows);
        const Buffer x = upload(padded), norm_weight = upload(norm), row_buffer = upload(rows), table = upload(random_floats(64 * c.head_dim, 9));
        const NormedRows normed = {.x = x.view(), .weight = norm_weight.view(), .width = cols, .eps = 1e-5f, .n_rows = n_rows};
        const PagedCache fused = make_cache(c, 3, 8, 7), apart = make_cache(c, 3, 8, 7);
        const Buffer fused_qkv = output<float>(size_t{n_rows} * width), qkv = output<float>(size_t{n_rows} * width);
        const Buffer prenormed = output<float>(padded.size()), scales = output<float>(n_rows);
        run(kernels(c.variant), [&](Recorder& to) {
            NormedRows member = normed;
            if (after_norm) {
                member = record_prenorm(to, weight, normed, prenormed.view(), scales.view());
                to.cmd.barrier();
            }
            record_qkv(to, weight, member, fused.shape,
                       {.qkv = fused_qkv.view(), .rows = row_buffer.view(), .table = table.view(), .pages = fused.page_buffer.view(),
                        .k_cache = fused.k.view(), .v_cache = fused.v.view()});
            record_normed_matvec(to, weight, c.variant == Variant::int8 ? member : normed, qkv.view(), width);
            to.cmd.barrier();
            record_rope_append(to, apart.shape,
                               {.qkv = qkv.view(), .rows = row_buffer.view(), .table = table.view(), .pages = apart.page_buffer.view(),
                                .k_cache = apart.k.view(), .v_cache = apart.v.view()},
                               n_rows);
        });
        const std::vector<float> found = floats(fused_qkv, size_t{n_rows} * width), expected = floats(qkv, size_t{n_rows} * width);
        for (uint32_t r = 0; r < n_rows; ++r) {
            if (rows[r].live) {
                EXPECT_TRUE(same_bits({&found[r * width], q_width}, {&expected[r * width], q_width})) << "row " << r;
            } else {
                EXPECT_EQ(std::bit_cast<uint32_t>(found[r * width]), kPoison);
            }
        }
        EXPECT_EQ(words(fused, fused.k), words(apart, apart.k));
        EXPECT_EQ(words(fused, fused.v), words(apart, apart.v));
    }
};

TEST_P(Qkv, has_the_bits_of_its_parts) {
    for (uint32_t n_rows : {1u, 3u, 6u}) expect_bits_of_the_parts(DType::bf16, 77, 0, n_rows);
    expect_bits_of_the_parts(DType::f16, 64, GetParam().head_dim + 2, 6); // a shard ends inside of a head
    expect_bits_of_the_parts(DType::bf16, 128, 0, 3, /*tiled=*/true);
    expect_bits_of_the_parts(DType::q4_0, 64, 0, 4);
    expect_bits_of_the_parts(DType::bf16, 77, 0, 3, /*tiled=*/false, /*after_norm=*/true);
    expect_bits_of_the_parts(DType::bf16, 128, 0, 6, /*tiled=*/true, /*after_norm=*/true);
    expect_bits_of_the_parts(DType::q4_0, 64, 0, 4, /*tiled=*/false, /*after_norm=*/true);
}

const std::vector<HeadCase> kCases = {{1, 3, 32, DType::f16}, {3, 2, 32, DType::f32}, {4, 2, 64, DType::f16},
                                      {5, 1, 64, DType::f32, Variant::shared}, {3, 2, 128, DType::f16, Variant::shuffles}, {1, 2, 128, DType::f16, Variant::lanes_16},
                                      {2, 2, 64, DType::f16, Variant::other_fetches}, {3, 2, 64, DType::f16, Variant::int8}};
INSTANTIATE_TEST_SUITE_P(, Qkv, ::testing::ValuesIn(kCases), [](const auto& i) { return head_case_name(i.param); });

} // namespace
} // namespace auspex::qkv_test
