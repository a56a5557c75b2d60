// Rotation and cache append: right values in the right places, and nothing anywhere else.
#include "kernels/cache_fixture.h"
#include "kernels/rope_append.h"
#include "reference/ops.h"

#include <cmath>
#include <limits>

namespace auspex::rope_append_test {
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
    // The reference rotates halves; here the two of a pair are neighbours.
    static void rotate(reference::Vector& head, uint32_t position) {
        const size_t half = head.size() / 2;
        reference::Vector halves(head.size());
        for (size_t i = 0; i < head.size(); ++i) halves[i / 2 + i % 2 * half] = head[i];
        reference::rope(halves, position, kTheta);
        for (size_t i = 0; i < head.size(); ++i) head[i] = halves[i / 2 + i % 2 * half];
    }
    Outcome append(std::span<const float> qkv, const std::vector<gpu::Row>& rows) { return append(qkv, rows, GetParam()); }
    Outcome append(std::span<const float> qkv, const std::vector<gpu::Row>& rows, const HeadCase& c) {
        Outcome out{{}, make_cache(c, 3, 8, 7)};
        PagedCache& cache = out.cache;
        const Buffer data = upload(qkv), row_buffer = upload(rows), table = upload(rotations(GetParam().head_dim));
        run([&](Recorder& to) {
            record_rope_append(to, cache.shape,
                               {.qkv = data.view(), .rows = row_buffer.view(), .table = table.view(), .pages = cache.page_buffer.view(),
                                .k_cache = cache.k.view(), .v_cache = cache.v.view()},
                               static_cast<uint32_t>(rows.size()));
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
            if (!is_v) rotate(expected, all[r].position);
            for (uint32_t d = 0; d < c.head_dim; ++d) {
                // Two products with rounded cosines, one sum.
                const double size = std::abs(head[d]) + std::abs(head[d ^ 1]);
                bound[d] = is_v ? 0.0 : rounding(3) * size;
                if ((is_k || is_v) && cache.is_q8()) { // half a step, of scales that are rounded up to 11 bits
                    double largest = 0;
                    for (uint32_t i = d / 32 * 32; i < d / 32 * 32 + 32; ++i)
                        largest = std::max(largest, std::abs(expected[i]));
                    bound[d] += (0.5 / 127) * (1 + 0x1p-9) * largest + 2 * bound[d];
                } else if ((is_k || is_v) && !cache.is_f32()) // halves: 11 bits, rounded either way as the device does it
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
    if (cache.is_q8()) return; // what was not written: below
    const size_t elements = size_t{cache.words(cache.k)} * (cache.is_f32() ? 1 : 2);
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

class RopeAppendQ8 : public RopeAppend {
  protected:
    // Magnitudes from far below the smallest scale to beyond the largest, and a block each of zeros, infinity and NaN.
    std::vector<float> wild_inputs(size_t n_rows) const {
        std::vector<float> qkv = random_floats(width() * n_rows, 7);
        reference::DataStream dice(11);
        const float special[] = {0.0f, 1e-37f, 1e-9f, 3e-8f, 4e-6f, 1e-5f, 1e-3f, 1.0f, 40.0f, 1e4f, 8.3e6f, 9e6f, 1e30f};
        for (size_t block = 0; block < qkv.size() / 32; ++block) {
            const float size = special[dice.below(std::size(special))];
            for (size_t i = 0; i < 32; ++i) qkv[block * 32 + i] *= size;
            if (dice.below(12) == 0) qkv[block * 32 + dice.below(32)] = std::numeric_limits<float>::quiet_NaN();
            if (dice.below(12) == 0) qkv[block * 32 + dice.below(32)] = -std::numeric_limits<float>::infinity();
        }
        return qkv;
    }
    static std::vector<uint32_t> words(const PagedCache& cache, const Buffer& pool) {
        const auto* first = reinterpret_cast<const uint32_t*>(pool.mapped());
        return {first, first + cache.words(pool)};
    }
};

// Bit for bit what the rule makes of the values that an f32 cache gets, and not a byte elsewhere.
TEST_P(RopeAppendQ8, stores_exactly_the_rounded_values) {
    const HeadCase c = GetParam();
    const std::vector<gpu::Row> all = rows();
    const std::vector<float> before = wild_inputs(all.size());
    const Outcome wide = append(before, all, {c.group, c.n_kv_heads, c.head_dim, DType::f32}), found = append(before, all);
    const PagedCache expected = make_cache(c, 3, 8, 7);
    uint32_t scales = 0, subnormal = 0, largest = 0, not_finite = 0;
    for (const gpu::Row& row : all) {
        if (!row.live) continue;
        for (uint32_t h = 0; h < c.n_kv_heads; ++h)
            for (const auto& [from, to] : {std::pair(&wide.cache.k, &expected.k), std::pair(&wide.cache.v, &expected.v)}) {
                const std::vector<float> values = wide.cache.vector(*from, row.slot, h, row.kv_index);
                expected.set_vector(*to, row.slot, h, row.kv_index, values);
                for (uint32_t d = 0; d < c.head_dim; d += 32, ++scales) {
                    const uint16_t scale = CacheBlock(std::span(values).subspan(d, 32)).scale;
                    subnormal += scale > 0 && scale < 0x400;
                    largest += scale == 0x7bff;
                    not_finite += scale == 0x7e00;
                }
            }
    }
    EXPECT_EQ(words(found.cache, found.cache.k), words(expected, expected.k));
    EXPECT_EQ(words(found.cache, found.cache.v), words(expected, expected.v));
    if (scales < 30) return; // every case was met where there are enough of them
    EXPECT_GT(subnormal, 0u);
    EXPECT_GT(largest, 0u);
    EXPECT_GT(not_finite, 0u);
    EXPECT_TRUE(same_bits(std::span(found.qkv).first(c.group * c.n_kv_heads * c.head_dim),
                          std::span(wide.qkv).first(c.group * c.n_kv_heads * c.head_dim)));
}

// Codes and scales written out by hand. Position 0 rotates by nothing.
TEST_P(RopeAppendQ8, rounds_ties_to_even_codes) {
    const HeadCase c = GetParam();
    std::vector<float> qkv(width(), 0.0f);
    const std::vector<float> values{127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 126.5f, -126.5f, -127, 0.75f, 0.49999997f, 63.5f, 64.5f};
    const std::vector<int> codes{127, 0, 2, 2, 0, -2, -2, 126, -126, -127, 1, 0, 64, 64};
    for (size_t head = c.group * c.n_kv_heads; head < size_t{c.group + 2} * c.n_kv_heads; ++head)
        std::copy(values.begin(), values.end(), qkv.begin() + static_cast<ptrdiff_t>(head * c.head_dim));
    const Outcome out = append(qkv, {plain_row(0, 0, 0)});
    for (const Buffer* pool : {&out.cache.k, &out.cache.v})
        for (uint32_t h = 0; h < c.n_kv_heads; ++h) {
            const std::vector<float> found = out.cache.vector(*pool, 0, h, 0);
            for (size_t i = 0; i < codes.size(); ++i)
                EXPECT_EQ(found[i], static_cast<float>(codes[i])) << "value " << values[i];
        }
}

const auto kQ8Cases = ::testing::Values(HeadCase{1, 3, 32, DType::q8_0}, HeadCase{3, 9, 32, DType::q8_0},
                                        HeadCase{4, 2, 64, DType::q8_0}, HeadCase{5, 1, 128, DType::q8_0});
INSTANTIATE_TEST_SUITE_P(q8, RopeAppend, kQ8Cases, [](const auto& i) { return head_case_name(i.param); });
INSTANTIATE_TEST_SUITE_P(, RopeAppendQ8, kQ8Cases, [](const auto& i) { return head_case_name(i.param); });

} // namespace
} // namespace auspex::rope_append_test
