// Attention of prompts by tiles of rows, in shared memory and on matrix units: against the reference, and bitwise the same in any
// chunks and company.
#include "kernels/attention_fixture.h"

namespace auspex::prompt_attention_test {
namespace {

class PromptAttention : public AttentionTest, public ::testing::WithParamInterface<HeadCase> {
  protected:
    void SetUp() override {
        AttentionTest::SetUp();
        prompt_ = true;
        const Tuning& tuning = library().tuning();
        // One f16 per query and weight, 2^-11 of each where devices round down.
        if (tuning.matrix && tuning.matmul_parts == 1 && GetParam().cache_dtype == DType::f16) more_error_ = 0x1p-11;
    }
    KernelLibrary& library() { return kernels(GetParam().variant); }
};

TEST_P(PromptAttention, agrees_with_the_reference) {
    const Tuning& tuning = library().tuning();
    ASSERT_EQ(tuning.prompt_attention, device().caps.max_shared_memory_bytes >= 32768u) << "else prompts go by the row family's kernel";
    const uint32_t tile_rows = prompt_tile_rows(tuning, filled(GetParam()).shape, 1);
    if (tuning.prompt_attention) ASSERT_GT(tile_rows, 1u);
    else ASSERT_EQ(tile_rows, attention_tile_rows(tuning, 1));
    agree(library(), GetParam());
}

// Rows of two slots, in runs that begin and end anywhere in a tile of rows, with padding between them.
TEST_P(PromptAttention, gives_a_row_the_same_bits_in_any_company) {
    const PagedCache cache = filled(GetParam());
    std::vector<gpu::Row> rows;
    for (uint32_t p = 95; p < 185; ++p)
        rows.push_back(plain_row(0, 0, p));
    for (uint32_t p = 0; p < 40; ++p)
        rows.push_back(plain_row(0, 1, p));
    rows.push_back(plain_row(0, 2, 300));
    rows.back().live = 0;
    for (uint32_t p = 200; p < 300; p += 9)
        rows.push_back(plain_row(0, p % 2, p % 2 ? p % 40 : p));
    const size_t width = qkv_width(cache), y_width = size_t{cache.shape.n_heads} * cache.shape.head_dim;
    const std::vector<float> qkv = random_floats(width * rows.size(), 4);
    const std::vector<float> whole = attend(library(), cache, qkv, rows);
    for (uint32_t chunk : {1u, 5u, 64u, 77u})
        for (uint32_t from = 0; from < rows.size();) {
            const uint32_t n = std::min(chunk, static_cast<uint32_t>(rows.size()) - from);
            const std::vector<float> y = attend(library(), cache, std::span(qkv).subspan(from * width, n * width),
                                                {rows.begin() + from, rows.begin() + from + n});
            EXPECT_TRUE(same_bits(y, std::span(whole).subspan(from * y_width, n * y_width))) << n << " rows from " << from;
            from += chunk == 1 ? 7 * n : n;
        }
}

// A later row of the same tile may have produced anything.
TEST_P(PromptAttention, never_weighs_a_later_rows_values) {
    PagedCache cache = filled(GetParam());
    std::vector<gpu::Row> rows;
    for (uint32_t p = 140; p < 160; ++p)
        rows.push_back(plain_row(0, 0, p));
    const size_t width = qkv_width(cache), y_width = size_t{cache.shape.n_heads} * cache.shape.head_dim;
    const std::vector<float> qkv = random_floats(width * rows.size(), 6);
    const std::vector<float> expected = attend(library(), cache, qkv, rows);
    const std::vector<float> bad(cache.shape.head_dim, NAN);
    for (const Buffer* pool : {&cache.v, &cache.k}) { // V alone, then both
        for (uint32_t h = 0; h < cache.shape.n_kv_heads; ++h) cache.set_vector(*pool, 0, h, 150, bad);
        const std::vector<float> y = attend(library(), cache, qkv, rows);
        EXPECT_TRUE(same_bits(std::span(y).first(10 * y_width), std::span(expected).first(10 * y_width)));
        for (uint32_t r = 10; r < rows.size(); ++r) EXPECT_TRUE(std::isnan(y[r * y_width])) << "row " << r;
    }
}

std::vector<HeadCase> cases() {
    std::vector<HeadCase> cases = {{1, 3, 32, DType::f16}, {1, 2, 128, DType::f16}, {3, 2, 32, DType::f32},  {4, 2, 64, DType::f16},  {5, 1, 64, DType::f32},
                                   {3, 2, 128, DType::f16}, {3, 2, 32, DType::q8_0}, {4, 2, 64, DType::q8_0}, {1, 2, 128, DType::q8_0}};
    for (HeadCase& c : cases) c.variant = Variant::tiles;
    for (const HeadCase& c : {HeadCase{1, 3, 32, DType::f16}, HeadCase{4, 2, 64, DType::f16}, HeadCase{5, 1, 64, DType::f16}, HeadCase{3, 2, 128, DType::f16}})
        for (Variant variant : {Variant::matrices, Variant::matrices_1}) {
            cases.push_back(c);
            cases.back().variant = variant;
        }
    return cases;
}
INSTANTIATE_TEST_SUITE_P(, PromptAttention, ::testing::ValuesIn(cases()), [](const auto& i) { return head_case_name(i.param); });

class PromptAttentionShapes : public AttentionTest {
  protected:
    static AttentionShape heads(uint32_t n_heads, uint32_t n_kv_heads, uint32_t head_dim) {
        return {n_heads, n_kv_heads, head_dim, kPageSize, 1, 1, DType::f16};
    }
};

// What the tiles cannot take goes through the row family's kernel.
TEST_F(PromptAttentionShapes, of_very_large_groups_go_by_the_row_familys) {
    Tuning tuning = kernels(Variant::tiles).tuning();
    tuning.attention_rows = 4;
    tuning.prompt_dims = 4096; // none of these is every device's
    tuning.matrix_attention = tuning.prompt_attention = true;
    EXPECT_EQ(prompt_tile_rows(tuning, heads(24, 8, 128), 64), 10u);
    EXPECT_EQ(prompt_tile_rows(tuning, heads(32, 8, 64), 64), 16u);
    EXPECT_EQ(prompt_tile_rows(tuning, heads(33, 1, 128), 64), 4u);
    EXPECT_EQ(prompt_tile_rows(tuning, heads(33, 1, 64), 64), 1u);
    tuning.matrix = {16, 16, 16}; // 32 queries for every dimension of a head; what is more goes by the tiles of shared memory
    EXPECT_EQ(prompt_tile_rows(tuning, heads(24, 8, 128), 64), 10u);
    EXPECT_EQ(prompt_tile_rows(tuning, heads(32, 8, 64), 64), 8u);
    EXPECT_EQ(prompt_tile_rows(tuning, heads(33, 1, 64), 64), 1u);
    EXPECT_EQ(prompt_tile_rows(tuning, heads(33, 1, 128), 64), 4u);
    tuning.attention_split = 64;
    EXPECT_EQ(prompt_tile_rows(tuning, heads(32, 8, 64), 64), 16u);
    tuning.matrix = {};
    tuning.attention_split = 48;
    EXPECT_EQ(prompt_tile_rows(tuning, heads(24, 8, 128), 64), 4u);
    EXPECT_EQ(prompt_tile_rows(tuning, heads(24, 8, 128), 5), 3u) << "tiles of one size";
    prompt_ = true;
    agree(kernels(Variant::tiles), {33, 1, 128, DType::f32, Variant::shared});
}

// Intel's workgroups have fewer queries, whose softmax more threads share.
TEST_F(PromptAttentionShapes, of_fewer_queries_are_as_right) {
    Tuning tuning = kernels(Variant::tiles).tuning();
    const bool has_tiles = std::exchange(tuning.prompt_attention, true);
    tuning.prompt_dims = 2048;
    EXPECT_EQ(prompt_tile_rows(tuning, heads(24, 8, 128), 64), 5u);
    EXPECT_EQ(prompt_tile_rows(tuning, heads(32, 8, 64), 64), 8u);
    EXPECT_EQ(prompt_tile_rows(tuning, heads(17, 1, 128), 64), attention_tile_rows(tuning, 64)) << "more heads than queries";
    tuning.prompt_attention = has_tiles; // they may take more shared memory than the device has
    auto library = KernelLibrary::create(device(), tuning, "");
    ASSERT_TRUE(library.ok());
    prompt_ = true;
    for (const HeadCase& c : {HeadCase{3, 2, 128, DType::f16}, HeadCase{4, 2, 64, DType::q8_0}, HeadCase{2, 2, 32, DType::f32}}) {
        SCOPED_TRACE(head_case_name(c));
        agree(*library.value(), c);
    }
}

} // namespace
} // namespace auspex::prompt_attention_test
