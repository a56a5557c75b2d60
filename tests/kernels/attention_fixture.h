// What tests of attention share: a filled cache, the op and its combination, the reference with its bounds.
#pragma once

#include "kernels/cache_fixture.h"
#include "kernels/prompt_attention.h"
#include "reference/ops.h"

#include <cmath>

namespace auspex {

constexpr uint32_t kPageSize = 16, kPagesPerSlot = 21; // 336 keys, three splits of 128

class AttentionTest : public CacheTest {
  protected:
    bool prompt_ = false; // through record_prompt_attention
    uint32_t rows_per_slot_ = 0; // what attention is told of its rows; 0: that they are all one slot's
    double more_error_ = 0.0;    // of each query and weight, beyond f32's

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
        const uint32_t rows_per_slot = rows_per_slot_ == 0 ? n_rows : rows_per_slot_;
        const uint32_t together = prompt_ ? prompt_tile_rows(library.tuning(), cache.shape, rows_per_slot) : attention_tile_rows(library.tuning(), rows_per_slot);
        const std::vector<uint32_t> counts{(end + split - 1) / split, cache.shape.n_kv_heads, (n_rows + together - 1) / together};
        const uint32_t max_splits = kPageSize * kPagesPerSlot / split + 2;
        const size_t y_size = size_t{n_rows} * cache.shape.n_heads * cache.shape.head_dim;
        const Buffer q = upload(qkv), row_buffer = upload(rows), count_buffer = upload(counts),
                     y = output<float>(y_size + 1);
        const Buffer partials =
            output<float>(size_t{n_rows} * cache.shape.n_heads * max_splits * (cache.shape.head_dim + 2));
        const AttentionBuffers buffers = {.qkv = q.view(),
                                          .pages = cache.page_buffer.view(),
                                          .k_cache = cache.k.view(),
                                          .v_cache = cache.v.view(),
                                          .partials = partials.view()};
        const AttentionRows at = {.rows = row_buffer.view(), .counts = count_buffer.view(), .n_rows = n_rows, .rows_per_slot = rows_per_slot};
        run(library, [&](Recorder& to) {
            if (prompt_)
                record_prompt_attention(to, cache.shape, buffers, at, max_splits);
            else
                record_attention(to, cache.shape, buffers, at, max_splits);
            to.cmd.barrier();
            record_combine(to, cache.shape, {.partials = partials.view(), .rows = row_buffer.view(), .y = y.view()}, max_splits, n_rows);
        });
        const std::vector<float> apart = floats(y, y_size);
        if (prompt_) return apart;

        // Joined by the last to be done: the same bits, nothing where no row lives, and counters ready for the next pass.
        const Buffer joined = output<float>(y_size + 1), done = upload(std::vector<uint32_t>(n_rows * cache.shape.n_kv_heads));
        const CombineBuffers combine = {.y = joined.view(), .done = done.view()};
        run(library, [&](Recorder& to) {
            record_attention(to, cache.shape, buffers, at, max_splits, &combine);
        });
        const size_t width = size_t{cache.shape.n_heads} * cache.shape.head_dim;
        const std::vector<float> by_last = floats(joined, y_size + 1);
        for (uint32_t r = 0; r < n_rows; ++r) {
            const std::span<const float> row(&by_last[r * width], width);
            if (rows[r].live) EXPECT_TRUE(same_bits(row, {&apart[r * width], width})) << "row " << r;
            else EXPECT_EQ(std::bit_cast<uint32_t>(row[0]), kPoison);
        }
        EXPECT_EQ(std::bit_cast<uint32_t>(by_last[y_size]), kPoison);
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
                score_error = std::max(score_error, (rounding(2.0 * s.head_dim + 3.0) + more_error_) * size);
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
                                      rounding(2.0 * n + 3.0 * steps) + more_error_;
                for (uint32_t d = 0; d < s.head_dim; ++d)
                    bound[d] = (2.1 * weight + kDivisionError) * sizes[d] + n * kTiny; // numerator and denominator
            }
            EXPECT_TRUE(all_near(found.subspan(head * s.head_dim, s.head_dim), expected, bound)) << "head " << head;
            all_expected.insert(all_expected.end(), expected.begin(), expected.end());
        }
        if (n > 0) {
            EXPECT_LT(normalised_error(found, all_expected), kNormalisedError + more_error_ * more_error_);
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

} // namespace auspex
