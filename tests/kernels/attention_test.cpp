// Paged split attention and its combination: against the reference, over chains and trees, with poison everywhere a row
// must not look, and bitwise the same in any company.
#include "kernels/attention_fixture.h"

namespace auspex::attention_test {
namespace {

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

// Rows of one tile: a later row's key may hold anything, and siblings of a tree each see their own.
TEST_P(Attention, rows_that_share_a_tile_see_their_own_keys) {
    PagedCache cache = filled(GetParam());
    KernelLibrary& library = kernels(GetParam().variant);
    std::vector<gpu::Row> rows;
    for (uint32_t p = 140; p < 146; ++p) rows.push_back(plain_row(0, 0, p));
    const size_t width = qkv_width(cache), y_width = size_t{cache.shape.n_heads} * cache.shape.head_dim;
    const std::vector<float> qkv = random_floats(width * rows.size(), 6), expected = attend(library, cache, qkv, rows);

    std::vector<gpu::Row> siblings;
    for (uint32_t i = 0; i < 3; ++i) {
        siblings.push_back(plain_row(0, 0, 140));
        siblings[i].prefix_len = 140;
        siblings[i].kv_index = siblings[i].path[0] = 140 + i;
    }
    const std::vector<float> together = attend(library, cache, std::span(qkv).first(3 * width), siblings);
    for (uint32_t i = 0; i < 3; ++i)
        EXPECT_TRUE(same_bits(std::span(together).subspan(i * y_width, y_width), attend(library, cache, std::span(qkv).subspan(i * width, width), {siblings[i]})));

    const std::vector<float> bad(cache.shape.head_dim, NAN);
    for (uint32_t h = 0; h < cache.shape.n_kv_heads; ++h)
        for (const Buffer* pool : {&cache.k, &cache.v}) cache.set_vector(*pool, 0, h, 143, bad);
    const std::vector<float> y = attend(library, cache, qkv, rows);
    EXPECT_TRUE(same_bits(std::span(y).first(3 * y_width), std::span(expected).first(3 * y_width)));
    if (cache.shape.cache_dtype != DType::q8_0) { // whose codes have no NaN
        EXPECT_TRUE(std::isnan(y[3 * y_width]));
    }
}

INSTANTIATE_TEST_SUITE_P(, Attention, ::testing::ValuesIn(head_cases()),
                         [](const auto& i) { return head_case_name(i.param); });
INSTANTIATE_TEST_SUITE_P(q8, Attention, ::testing::ValuesIn(q8_cases()),
                         [](const auto& i) { return head_case_name(i.param); });

class AttentionVariants : public AttentionTest, public ::testing::WithParamInterface<Variant> {};

TEST_P(AttentionVariants, agree_with_the_reference) {
    for (const HeadCase& c : {HeadCase{4, 2, 64, DType::f16}, HeadCase{3, 2, 32, DType::f32},
                              HeadCase{1, 2, 32, DType::q8_0}, HeadCase{1, 2, 64, DType::q8_0},
                              HeadCase{1, 1, 128, DType::q8_0}}) // the 16 lanes of two subgroups read V last: keys' halves in turn
        agree(kernels(GetParam()), c);
}

INSTANTIATE_TEST_SUITE_P(, AttentionVariants,
                         ::testing::Values(Variant::shuffles, Variant::shared, Variant::lanes_16, Variant::lanes_32),
                         [](const auto& i) { return variant_name(i.param); });

class AttentionBits : public AttentionTest {};

TEST_F(AttentionBits, do_not_depend_on_how_lanes_exchange_or_fetch) {
    for (const HeadCase& c : {HeadCase{3, 2, 32, DType::f32}, HeadCase{1, 2, 32, DType::q8_0}, HeadCase{1, 2, 128, DType::q8_0}, HeadCase{4, 1, 32, DType::f16},
                              HeadCase{2, 2, 64, DType::f16}, HeadCase{1, 1, 128, DType::f32}}) {
        const PagedCache cache = filled(c);
        const std::vector<gpu::Row> rows = edge_rows();
        const std::vector<float> qkv = random_floats(qkv_width(cache) * rows.size(), 5);
        const std::vector<float> native = attend(kernels(), cache, qkv, rows);
        for (Variant variant : {Variant::shuffles, Variant::shared, Variant::other_fetches})
            EXPECT_TRUE(same_bits(attend(kernels(variant), cache, qkv, rows), native)) << head_case_name(c) << variant_name(variant);
    }
}

// What GPUs have: several teams share a split's keys. As right, a row the same in any company, and the same bits whether lanes
// exchange by shuffles or through shared memory.
TEST_F(AttentionBits, of_several_teams_are_right_and_their_own) {
    for (uint32_t teams : {4u, 8u}) {
        auto shuffles = kernels(Variant::shuffles).tuning(), shared = kernels(Variant::shared).tuning();
        shuffles.attention_teams = shared.attention_teams = teams;
        shuffles.attention_dims = shared.attention_dims = 256; // of twelve heads two at a time: llvmpipe compiles all of them for a minute
        auto by_shuffles = KernelLibrary::create(device(), shuffles, ""), by_memory = KernelLibrary::create(device(), shared, "");
        ASSERT_TRUE(by_shuffles.ok() && by_memory.ok());
        for (const HeadCase& c : teams == 8 ? std::vector<HeadCase>{{3, 2, 32, DType::f32}} : std::vector<HeadCase>{{1, 2, 64, DType::q8_0}, {12, 1, 128, DType::f16}}) {
            SCOPED_TRACE(head_case_name(c) + ", " + std::to_string(teams) + " teams");
            agree(*by_shuffles.value(), c);
            const PagedCache cache = filled(c);
            const std::vector<gpu::Row> rows = edge_rows();
            const size_t width = qkv_width(cache), y_width = size_t{cache.shape.n_heads} * cache.shape.head_dim;
            const std::vector<float> qkv = random_floats(width * rows.size(), 5);
            const std::vector<float> together = attend(*by_shuffles.value(), cache, qkv, rows);
            EXPECT_TRUE(same_bits(attend(*by_memory.value(), cache, qkv, rows), together));
            for (size_t r = 0; r < rows.size() && rows[r].live != 0; ++r)
                EXPECT_TRUE(same_bits(attend(*by_shuffles.value(), cache, std::span(qkv).subspan(r * width, width), {rows[r]}), std::span(together).subspan(r * y_width, y_width))) << "row " << r;
        }
    }
}

// Tiles of one row up to all of them: a chain over a split's edge, and after it another slot's.
TEST_F(AttentionBits, do_not_depend_on_how_many_rows_share_what_is_read) {
    for (const HeadCase& c : {HeadCase{2, 2, 64, DType::f16}, HeadCase{3, 2, 32, DType::f32}, HeadCase{1, 2, 64, DType::q8_0}}) {
        const PagedCache cache = filled(c);
        std::vector<gpu::Row> rows;
        for (uint32_t p = 124; p < 131; ++p) rows.push_back(plain_row(0, 0, p));
        for (uint32_t p = 36; p < 39; ++p) rows.push_back(plain_row(0, 1, p));
        const std::vector<float> qkv = random_floats(qkv_width(cache) * rows.size(), 8);
        for (Variant variant : {Variant::native, Variant::shuffles}) {
            const std::vector<float> native = attend(kernels(variant), cache, qkv, rows);
            for (uint32_t together : attention_rows_choices()) {
                Tuning tuning = kernels(variant).tuning();
                tuning.attention_rows = together;
                EXPECT_EQ(attention_tile_rows(tuning, 16), together);
                auto library = KernelLibrary::create(device(), tuning, "");
                ASSERT_TRUE(library.ok());
                EXPECT_TRUE(same_bits(attend(*library.value(), cache, qkv, rows), native)) << head_case_name(c) << variant_name(variant) << ", " << together;
            }
        }
    }
}

// A group's query heads one by one up to all at once, where a lane loads a tile's keys at once (32 lanes) and one after the other (8).
TEST_F(AttentionBits, do_not_depend_on_how_many_query_heads_go_at_once) {
    for (const HeadCase& c : {HeadCase{3, 2, 128, DType::f16}, HeadCase{4, 2, 64, DType::q8_0}, HeadCase{5, 1, 64, DType::f32}}) {
        const PagedCache cache = filled(c);
        const std::vector<gpu::Row> rows = edge_rows();
        const std::vector<float> qkv = random_floats(qkv_width(cache) * rows.size(), 5);
        for (Variant variant : {Variant::shuffles, Variant::lanes_32}) {
            const std::vector<float> at_once = attend(kernels(variant), cache, qkv, rows);
            for (uint32_t dims : {1u, 128u, 256u}) {
                Tuning tuning = kernels(variant).tuning();
                tuning.attention_dims = dims;
                auto library = KernelLibrary::create(device(), tuning, "");
                ASSERT_TRUE(library.ok());
                EXPECT_TRUE(same_bits(attend(*library.value(), cache, qkv, rows), at_once)) << head_case_name(c) << variant_name(variant) << ", " << dims;
            }
        }
    }
}

// Two siblings at one position and the child of the second, beside the same keys laid out as a plain chain; the branch
// begins before a split's edge and goes on after it, its keys lie in any order, and everything else is poison.
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
} // namespace auspex::attention_test
