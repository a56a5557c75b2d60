// Paged split attention and its combination: against the reference, over chains and trees, with poison everywhere a row
// must not look, and bitwise the same in any company.
#include "kernels/attention.h"
#include "kernels/cache_fixture.h"
#include "reference/ops.h"

#include <cmath>

namespace auspex {
namespace {

constexpr uint32_t kPageSize = 16, kPagesPerSlot = 21; // 336 keys, three splits of 128

class AttentionTest : public CacheTest {
  protected:
    static void fill(const PagedCache& cache, uint32_t slot, uint32_t kv_index, uint32_t seed) {
        const uint32_t width = cache.shape.head_dim;
        const std::vector<float> values = random_floats(size_t{2} * cache.shape.n_kv_heads * width, seed);
        for (uint32_t h = 0; h < cache.shape.n_kv_heads; ++h)
            for (const Buffer* pool : {&cache.k, &cache.v})
                cache.set_vector(*pool, slot, h, kv_index,
                                 std::span(values).subspan((2 * h + (pool == &cache.v)) * width, width));
    }

    // qkv: (rows, n_heads + 2 n_kv_heads, head_dim), of which q counts. Returns y: (rows, n_heads, head_dim).
    std::vector<float> attend(KernelLibrary& library, const PagedCache& cache, std::span<const float> qkv,
                              const std::vector<gpu::Row>& rows) {
        const uint32_t split = library.tuning().attention_split;
        const auto n_rows = static_cast<uint32_t>(rows.size());
        uint32_t end = 0;
        for (const gpu::Row& row : rows)
            end = std::max(end, row.live ? row.position + 1 : 0);
        const std::vector<uint32_t> counts{(end + split - 1) / split, cache.shape.n_kv_heads, n_rows};
        const uint32_t max_splits = kPageSize * kPagesPerSlot / split + 2;
        const size_t y_size = size_t{n_rows} * cache.shape.n_heads * cache.shape.head_dim;
        const Buffer q = upload(qkv), row_buffer = upload(rows), count_buffer = upload(counts),
                     y = output<float>(y_size + 1);
        const Buffer partials =
            output<float>(size_t{n_rows} * cache.shape.n_heads * max_splits * (cache.shape.head_dim + 2));
        const Buffer joined = output<float>(y_size + 1), done = upload(std::vector<uint32_t>(n_rows * cache.shape.n_kv_heads));
        const CombineBuffers combine = {joined.view(), done.view()};
        run(library, [&](Recorder& to) {
            record_attention(to, cache.shape, q.view(), row_buffer.view(), cache.page_buffer.view(), cache.k.view(),
                             cache.v.view(), partials.view(), max_splits, count_buffer.view());
            to.cmd.barrier();
            record_combine(to, cache.shape, partials.view(), row_buffer.view(), y.view(), max_splits, n_rows);
            to.cmd.barrier();
            record_attention(to, cache.shape, q.view(), row_buffer.view(), cache.page_buffer.view(), cache.k.view(),
                             cache.v.view(), partials.view(), max_splits, count_buffer.view(), &combine);
        });
        // Joined by the last to be done: the same bits, nothing where no row lives, and counters ready for the next pass.
        const size_t width = size_t{cache.shape.n_heads} * cache.shape.head_dim;
        const std::vector<float> apart = floats(y, y_size), together = floats(joined, y_size + 1);
        for (uint32_t r = 0; r < n_rows; ++r) {
            const std::span<const float> row(&together[r * width], width);
            if (rows[r].live) EXPECT_TRUE(same_bits(row, {&apart[r * width], width})) << "row " << r;
            else EXPECT_EQ(std::bit_cast<uint32_t>(row[0]), kPoison);
        }
        EXPECT_EQ(std::bit_cast<uint32_t>(together[y_size]), kPoison);
        EXPECT_EQ(read<uint32_t>(done, n_rows * cache.shape.n_kv_heads), std::vector<uint32_t>(n_rows * cache.shape.n_kv_heads));
        return apart;
    }

    // The keys of a row in order of position, as the shared header words it.
    static uint32_t index_of(const gpu::Row& row, uint32_t j) {
        return j < row.prefix_len ? j : row.path[j - row.prefix_len];
    }

    void expect_right(const PagedCache& cache, std::span<const float> qkv, const gpu::Row& row,
                      std::span<const float> found) {
        const AttentionShape& s = cache.shape;
        const double scale = 1.0 / std::sqrt(double(s.head_dim));
        const uint32_t n = row.live ? row.position + 1 : 0;
        std::vector<double> all_expected;
        for (uint32_t head = 0; head < s.n_heads; ++head) {
            const uint32_t kv_head = head / (s.n_heads / s.n_kv_heads);
            const reference::Vector q(&qkv[head * s.head_dim], &qkv[head * s.head_dim] + s.head_dim);
            reference::Vector keys, values, value_sizes, expected(s.head_dim, 0.0), bound(s.head_dim, 0.0);
            double score_error = 0.0, lowest = 0.0, highest = 0.0;
            for (uint32_t j = 0; j < n; ++j) {
                double score = 0.0, size = 0.0;
                for (uint32_t d = 0; d < s.head_dim; ++d) {
                    const size_t at = cache.element(row.slot, kv_head, index_of(row, j), d);
                    keys.push_back(cache.get(cache.k, at));
                    values.push_back(cache.get(cache.v, at));
                    value_sizes.push_back(std::abs(values.back()));
                    score += scale * q[d] * keys.back();
                    size += scale * std::abs(q[d] * keys.back());
                }
                score_error = std::max(score_error, rounding(2.0 * s.head_dim + 3.0) * size);
                lowest = std::min(lowest, score);
                highest = std::max(highest, score);
            }
            if (n > 0) {
                expected = reference::attention(q, keys, values, scale);
                const reference::Vector sizes = reference::attention(q, keys, value_sizes, scale);
                // A weight is a product of one exp per tile and one per split, whose arguments telescope: their own
                // errors, the rounded differences, and a rounding or two per key on the way to the sum.
                const double steps = n / 8.0 + 5.0, range = highest - lowest;
                const double weight = 2.0 * score_error + steps * (exp_error(0) + kUnit * range) + exp_error(range) +
                                      rounding(2.0 * n + 3.0 * steps);
                for (uint32_t d = 0; d < s.head_dim; ++d)
                    bound[d] = (2.1 * weight + kDivisionError) * sizes[d] + n * kTiny; // numerator and denominator
            }
            EXPECT_TRUE(all_near(found.subspan(head * s.head_dim, s.head_dim), expected, bound)) << "head " << head;
            all_expected.insert(all_expected.end(), expected.begin(), expected.end());
        }
        if (n > 0) {
            EXPECT_LT(normalised_error(found, all_expected), kNormalisedError);
        }
    }

    static size_t qkv_width(const PagedCache& cache) {
        return size_t{cache.shape.n_heads + 2 * cache.shape.n_kv_heads} * cache.shape.head_dim;
    }
    // Rows at edges of tiles, pages and splits; one is not live. Slot 0 has 300 keys, slot 1 has 40, slot 2 none.
    PagedCache filled(const HeadCase& c) {
        PagedCache cache = make_cache(c, 3, kPageSize, kPagesPerSlot);
        for (uint32_t i = 0; i < 300; ++i)
            fill(cache, 0, i, 1000 + i);
        for (uint32_t i = 0; i < 40; ++i)
            fill(cache, 1, i, 2000 + i);
        return cache;
    }
    static std::vector<gpu::Row> edge_rows() {
        std::vector<gpu::Row> rows;
        for (uint32_t p : {0u, 7u, 8u, 127u, 128u, 255u, 256u, 299u})
            rows.push_back(plain_row(0, 0, p));
        for (uint32_t p : {1u, 16u, 39u})
            rows.push_back(plain_row(0, 1, p));
        rows.push_back(plain_row(0, 2, 300)); // not live: its keys are poison
        rows.back().live = 0;
        return rows;
    }
    void agree(KernelLibrary& library, const HeadCase& c) {
        const PagedCache cache = filled(c);
        const std::vector<gpu::Row> rows = edge_rows();
        const std::vector<float> qkv = random_floats(qkv_width(cache) * rows.size(), 3);
        const std::vector<float> y = attend(library, cache, qkv, rows);
        const size_t y_width = size_t{cache.shape.n_heads} * cache.shape.head_dim;
        for (size_t r = 0; r < rows.size(); ++r) {
            SCOPED_TRACE("row " + std::to_string(r));
            expect_right(cache, std::span(qkv).subspan(r * qkv_width(cache)), rows[r],
                         std::span(y).subspan(r * y_width, y_width));
        }
    }
};

class Attention : public AttentionTest, public ::testing::WithParamInterface<HeadCase> {};

TEST_P(Attention, agrees_with_the_reference) {
    agree(kernels(GetParam().variant), GetParam());
}

TEST_P(Attention, gives_a_row_the_same_bits_in_any_company) {
    const PagedCache cache = filled(GetParam());
    std::vector<gpu::Row> rows;
    for (uint32_t i = 0; i < 72; ++i)
        rows.push_back(plain_row(0, i % 2, i % 2 ? i % 40 : i * 4 + 5));
    const size_t width = qkv_width(cache), y_width = size_t{cache.shape.n_heads} * cache.shape.head_dim;
    const std::vector<float> qkv = random_floats(width * rows.size(), 4);
    const std::vector<float> whole = attend(kernels(GetParam().variant), cache, qkv, rows);
    for (uint32_t n : {1u, 2u, 3u, 16u, 17u, 40u}) {
        const std::vector<float> y = attend(kernels(GetParam().variant), cache, std::span(qkv).first(n * width),
                                            {rows.begin(), rows.begin() + n});
        EXPECT_TRUE(same_bits(y, std::span(whole).first(n * y_width))) << n << " rows";
    }
    for (uint32_t r : {1u, 33u, 62u, 71u}) {
        const std::vector<float> y =
            attend(kernels(GetParam().variant), cache, std::span(qkv).subspan(r * width, width), {rows[r]});
        EXPECT_TRUE(same_bits(y, std::span(whole).subspan(r * y_width, y_width))) << "row " << r;
    }
}

INSTANTIATE_TEST_SUITE_P(, Attention, ::testing::ValuesIn(head_cases()),
                         [](const auto& i) { return head_case_name(i.param); });
INSTANTIATE_TEST_SUITE_P(q8, Attention, ::testing::ValuesIn(q8_cases()),
                         [](const auto& i) { return head_case_name(i.param); });

class AttentionVariants : public AttentionTest, public ::testing::WithParamInterface<Variant> {};

TEST_P(AttentionVariants, agree_with_the_reference) {
    for (const HeadCase& c : {HeadCase{4, 2, 64, DType::f16}, HeadCase{3, 2, 32, DType::f32},
                              HeadCase{1, 2, 32, DType::q8_0}, HeadCase{1, 2, 64, DType::q8_0}})
        agree(kernels(GetParam()), c);
}

INSTANTIATE_TEST_SUITE_P(, AttentionVariants,
                         ::testing::Values(Variant::shuffles, Variant::shared, Variant::lanes_16, Variant::lanes_32),
                         [](const auto& i) { return variant_name(i.param); });

class AttentionBits : public AttentionTest {};

TEST_F(AttentionBits, do_not_depend_on_how_lanes_exchange) {
    for (const HeadCase& c : {HeadCase{3, 2, 32, DType::f32}, HeadCase{1, 2, 32, DType::q8_0}, HeadCase{1, 2, 128, DType::q8_0}}) {
        const PagedCache cache = filled(c);
        const std::vector<gpu::Row> rows = edge_rows();
        const std::vector<float> qkv = random_floats(qkv_width(cache) * rows.size(), 5);
        const std::vector<float> native = attend(kernels(), cache, qkv, rows);
        for (Variant variant : {Variant::shuffles, Variant::shared})
            EXPECT_TRUE(same_bits(attend(kernels(variant), cache, qkv, rows), native)) << head_case_name(c) << variant_name(variant);
    }
}

// Two siblings at one position and the child of the second, beside the same keys laid out as a plain chain; the branch
// begins before a split's edge and goes on behind it, its keys lie in any order, and everything else is poison.
TEST_F(AttentionBits, are_those_of_a_chain_for_every_path_of_a_tree) {
    for (const HeadCase& c : {HeadCase{4, 2, 64, DType::f16}, HeadCase{3, 2, 32, DType::f32},
                              HeadCase{1, 2, 64, DType::q8_0}}) {
        constexpr uint32_t kPrefix = 125;
        const PagedCache cache = make_cache(c, 2, kPageSize, kPagesPerSlot);
        for (uint32_t slot : {0u, 1u})
            for (uint32_t i = 0; i < kPrefix; ++i)
                fill(cache, slot, i, 1000 + i);
        // Slot 0: depth 0 → 125; depth 1: siblings 126 and 127; below the second: 131, 129, 140. Slot 1: that path as a
        // chain.
        const std::vector<uint32_t> path{125, 127, 131, 129, 140};
        for (uint32_t depth = 0; depth < path.size(); ++depth) {
            fill(cache, 0, path[depth], 3000 + depth);
            fill(cache, 1, kPrefix + depth, 3000 + depth);
        }
        fill(cache, 0, 126, 4000);

        std::vector<gpu::Row> tree, chain;
        for (uint32_t depth = 0; depth < path.size(); ++depth) {
            gpu::Row row = plain_row(0, 0, kPrefix + depth);
            row.prefix_len = kPrefix;
            row.kv_index = path[depth];
            std::fill(std::begin(row.path), std::end(row.path), 300u); // poison beyond the row's own depth
            std::copy_n(path.begin(), depth + 1, row.path);
            tree.push_back(row);
            chain.push_back(plain_row(0, 1, kPrefix + depth));
        }
        const std::vector<float> qkv = random_floats(qkv_width(cache) * path.size(), 6);
        const std::vector<float> on_chain = attend(kernels(), cache, qkv, chain);
        EXPECT_TRUE(same_bits(attend(kernels(), cache, qkv, tree), on_chain));
        expect_right(cache, std::span(qkv).subspan(4 * qkv_width(cache)), tree[4],
                     std::span(on_chain).subspan(on_chain.size() / 5 * 4));

        // The other sibling sees its own key instead.
        gpu::Row sibling = tree[1];
        sibling.kv_index = sibling.path[1] = 126;
        const std::vector<float> other =
            attend(kernels(), cache, std::span(qkv).subspan(qkv_width(cache), qkv_width(cache)), {sibling});
        expect_right(cache, std::span(qkv).subspan(qkv_width(cache)), sibling, other);
        EXPECT_FALSE(same_bits(other, std::span(on_chain).subspan(other.size(), other.size())));
    }
}

} // namespace
} // namespace auspex
