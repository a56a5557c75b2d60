// Rotation and cache append: right values in the right places, and nothing anywhere else.
#include "kernels/cache_fixture.h"
#include "reference/ops.h"

#include <cmath>

namespace auspex {
namespace {

constexpr double kTheta = 10000.0;

class RopeAppend : public CacheTest, public ::testing::WithParamInterface<HeadCase> {
  protected:
    struct Outcome {
        std::vector<float> qkv;
        PagedCache cache;
    };
    uint32_t width() const { return (GetParam().group + 2) * GetParam().n_kv_heads * GetParam().head_dim; }

    // (max_context, head_dim / 2, 2)
    static std::vector<float> rotations(uint32_t head_dim) {
        std::vector<float> table;
        for (uint32_t p = 0; p < 64; ++p)
            for (uint32_t i = 0; i < head_dim / 2; ++i) {
                const double angle = p * std::pow(kTheta, -2.0 * i / head_dim);
                table.push_back(static_cast<float>(std::cos(angle)));
                table.push_back(static_cast<float>(std::sin(angle)));
            }
        return table;
    }
    Outcome append(std::span<const float> qkv, const std::vector<gpu::Row>& rows) {
        Outcome out{{}, make_cache(GetParam(), 3, 8, 7)};
        PagedCache& cache = out.cache;
        const Buffer data = upload(qkv), row_buffer = upload(rows), table = upload(rotations(GetParam().head_dim));
        run([&](Recorder& to) {
            record_rope_append(to, cache.shape, data.view(), row_buffer.view(), table.view(), cache.page_buffer.view(),
                               cache.k.view(), cache.v.view(), static_cast<uint32_t>(rows.size()));
        });
        out.qkv = floats(data, qkv.size());
        return out;
    }
    static std::vector<gpu::Row> rows() {
        std::vector<gpu::Row> rows{plain_row(0, 0, 0),  plain_row(0, 0, 1),  plain_row(0, 1, 17), plain_row(0, 2, 55),
                                   plain_row(0, 1, 40), plain_row(0, 2, 30), plain_row(0, 2, 30)};
        rows[3].live = 0;
        rows[5].kv_index = 31; // siblings of a tree: one position, two places
        rows[6].kv_index = 32;
        return rows;
    }
};

TEST_P(RopeAppend, rotates_and_stores) {
    const HeadCase c = GetParam();
    const std::vector<gpu::Row> all = rows();
    const std::vector<float> before = random_floats(size_t{width()} * all.size(), 1);
    const Outcome after = append(before, all);
    const PagedCache& cache = after.cache;
    uint64_t written = 0;
    for (size_t r = 0; r < all.size(); ++r) {
        const float* old = &before[r * width()];
        const uint32_t heads = (c.group + 2) * c.n_kv_heads;
        if (!all[r].live) {
            EXPECT_TRUE(same_bits({&after.qkv[r * width()], width()}, {old, width()}));
            continue;
        }
        for (uint32_t h = 0; h < heads; ++h) {
            const float* head = old + size_t{h} * c.head_dim;
            const bool is_v = h >= (c.group + 1) * c.n_kv_heads, is_k = !is_v && h >= c.group * c.n_kv_heads;
            reference::Vector expected(head, head + c.head_dim), bound(c.head_dim, 0.0);
            if (!is_v) reference::rope(expected, all[r].position, kTheta);
            for (uint32_t d = 0; d < c.head_dim; ++d) {
                // Two products with rounded cosines, one sum.
                const double size = std::abs(head[d]) + std::abs(head[(d + c.head_dim / 2) % c.head_dim]);
                bound[d] = is_v ? 0.0 : rounding(3) * size;
                // Stored halves: 11 bits, rounded either way as the device does it.
                if ((is_k || is_v) && !cache.is_f32())
                    bound[d] += 0x1p-10 * (std::abs(expected[d]) + bound[d]) + 0x1p-24;
            }
            if (is_k || is_v) {
                const uint32_t kv_head = h - (is_v ? c.group + 1 : c.group) * c.n_kv_heads;
                const Buffer& pool = is_v ? cache.v : cache.k;
                EXPECT_TRUE(all_near(cache.vector(pool, all[r].slot, kv_head, all[r].kv_index), expected, bound))
                    << "row " << r;
                written += c.head_dim;
            } else {
                EXPECT_TRUE(all_near({&after.qkv[r * width() + h * c.head_dim], c.head_dim}, expected, bound))
                    << "row " << r;
            }
        }
    }
    const size_t elements = size_t{cache.words()} * (cache.is_f32() ? 1 : 2);
    uint64_t changed = 0;
    for (size_t i = 0; i < elements; ++i)
        changed += !cache.is_poison(cache.k, i) + !cache.is_poison(cache.v, i);
    EXPECT_EQ(changed, written) << "elements of the pools that changed";
}

TEST_P(RopeAppend, gives_every_row_its_bits_in_any_company) {
    const std::vector<gpu::Row> all = rows();
    const std::vector<float> before = random_floats(size_t{width()} * all.size(), 2);
    const Outcome together = append(before, all);
    for (size_t r : {0u, 4u, 6u}) {
        const Outcome alone = append(std::span(before).subspan(r * width(), width()), {all[r]});
        const uint32_t q = GetParam().group * GetParam().n_kv_heads * GetParam().head_dim;
        EXPECT_TRUE(same_bits({alone.qkv.data(), q}, {&together.qkv[r * width()], q}));
        for (uint32_t h = 0; h < GetParam().n_kv_heads; ++h) {
            EXPECT_TRUE(same_bits(alone.cache.vector(alone.cache.k, all[r].slot, h, all[r].kv_index),
                                  together.cache.vector(together.cache.k, all[r].slot, h, all[r].kv_index)));
            EXPECT_TRUE(same_bits(alone.cache.vector(alone.cache.v, all[r].slot, h, all[r].kv_index),
                                  together.cache.vector(together.cache.v, all[r].slot, h, all[r].kv_index)));
        }
    }
}

INSTANTIATE_TEST_SUITE_P(, RopeAppend, ::testing::ValuesIn(head_cases()),
                         [](const auto& i) { return head_case_name(i.param); });

} // namespace
} // namespace auspex
